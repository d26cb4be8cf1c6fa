"""`kardinal version`."""

from __future__ import annotations

import asyncio
from importlib.metadata import version as package_version
from pathlib import Path

import click

from kardinal.cli.output import say
from kardinal.cli.session import connect
from kardinal.kube import KubeError, NotFound
from kardinal.objects import CONFIG_MAP, DEPLOYMENT

__all__ = ["version"]


@click.command()
@click.option("--context", help="Context of the kubeconfig; default: its current one.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Path of the kubeconfig.")
def version(*, context: str | None, kubeconfig: Path | None) -> None:
    """Print the versions of this command and of the controller it talks to."""
    say(f"kardinal     {package_version('kardinal')}")
    say(f"controller   {asyncio.run(_controller(kubeconfig, context))}")


async def _controller(kubeconfig: Path | None, context: str | None) -> str:
    try:
        async with connect(kubeconfig, context, None) as session:
            try:
                info = await session.client.get(CONFIG_MAP, "kardinal-info", "kardinal-system")
                return str(info.get("data", {}).get("version", "unknown"))
            except NotFound:
                deployment = await session.client.get(DEPLOYMENT, "kardinal-controller", "kardinal-system")
                image: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
                return image.rpartition(":")[2]
    except NotFound:
        return "not installed in this cluster"
    except KubeError as error:
        return f"not reachable ({error})"
