"""`kardinal version`: the versions of the command and of the programs in the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Final

import click

from kardinal.cli.output import one_line, say
from kardinal.cli.session import connect
from kardinal.kube import Forbidden, KubeError, NotFound
from kardinal.objects import CONFIG_MAP
from kardinal.objects.text import cut
from kardinal.promotion.api.names import SYSTEM_NAMESPACE, VERSIONS

__all__ = ["version"]

_CONTROLLER: Final = "controller"
_UNKNOWN: Final = "unknown"
_MOST: Final = 100
"""The maximum number of agents that are listed."""
_LENGTH: Final = 64
"""The maximum length of a name and of a version, which every agent can write."""


@click.command()
@click.option("--context", help="Context of the kubeconfig; default: its current one.")
@click.option("--kubeconfig", type=click.Path(dir_okay=False, path_type=Path), help="Path of the kubeconfig.")
def version(*, context: str | None, kubeconfig: Path | None) -> None:
    """Print the versions of this command and of the programs it talks to.

    Each program records its version when it starts. One without a record is unknown.
    """
    programs = [("kardinal", package_version("kardinal")), *asyncio.run(_recorded(kubeconfig, context))]
    columns = max(len(name) for name, _ in programs)
    for name, found in programs:
        say(f"{name.ljust(columns)}   {found}")


async def _recorded(kubeconfig: Path | None, context: str | None) -> list[tuple[str, str]]:
    """Return the programs of a cluster with their versions: the controller, then the agents sorted by name.

    If they cannot be read, the only entry is the controller with `unknown`, or with the error in place of a version.
    """
    try:
        async with connect(kubeconfig, context, None) as session:
            stored = await session.client.get(CONFIG_MAP, VERSIONS, SYSTEM_NAMESPACE)
    except (NotFound, Forbidden):
        return [(_CONTROLLER, _UNKNOWN)]
    except KubeError as error:
        return [(_CONTROLLER, one_line(f"not reachable ({error})"))]
    found: Mapping[str, str] = stored.get("data") or {}
    others = sorted(found.keys() - {_CONTROLLER})
    listed = [(_CONTROLLER, _shown(found.get(_CONTROLLER, _UNKNOWN)))]
    listed += [(_shown(name), _shown(found[name])) for name in others[:_MOST]]
    if len(others) > _MOST:
        listed.append(("…", f"{len(others) - _MOST:,} more"))
    return listed


def _shown(text: str) -> str:
    return cut(one_line(text[: 2 * _LENGTH]), _LENGTH)
