"""`kardinal-controller`: the control plane as a process.

It talks to the cluster that its kubeconfig or its service account names, and to nothing else: a controller that found
no cluster and quietly used one of its own would promote where nobody looks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from kardinal.kube import Client, ConfigError, load_connection
from kardinal.runtime.clock import SystemClock
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.http import split_address
from kardinal.runtime.logging import configure
from kardinal_controller.program import Controller, ControllerOptions

new_event_loop: Callable[[], asyncio.AbstractEventLoop]
try:
    from uvloop import new_event_loop
except ImportError:
    new_event_loop = asyncio.new_event_loop

__all__ = ["main"]


def _checked(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        split_address(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
    return value


_address_option = partial(click.option, metavar="HOST:PORT", callback=_checked)


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: KUBECONFIG, then ~/.kube/config, then the service account of the pod.",
)
@click.option(
    "--policy-namespaces",
    default="platform-policies",
    metavar="NAME,…",
    help="Namespaces whose gates hold for every Pipeline.",
)
@click.option("--allow-local-repositories", is_flag=True, help="Accept file:// URLs and paths as repositories.")
@click.option("--standalone/--no-standalone", default=True, help="Also execute the promotions that no shard claims.")
@_address_option("--api-bind-address", default=":8083", help="Where Bundles are posted to.")
@_address_option("--metrics-bind-address", default=":8080", help="/metrics")
@_address_option("--health-probe-bind-address", default=":8081", help="/healthz and /readyz")
@click.option(
    "--git-cache-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("/var/cache/kardinal"),
    help="Mirrors of repositories; may be emptied at any time.",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
@click.option("--log-format", type=click.Choice(["json", "console"]), help="Default: console on a terminal, else JSON.")
def main(
    *,
    kubeconfig: Path | None,
    policy_namespaces: str,
    allow_local_repositories: bool,
    standalone: bool,
    api_bind_address: str,
    metrics_bind_address: str,
    health_probe_bind_address: str,
    git_cache_dir: Path,
    log_level: str,
    log_format: str | None,
) -> None:
    """Decide what is promoted where. Ends cleanly on SIGINT and SIGTERM."""
    configure(level=log_level, json=None if log_format is None else log_format == "json")
    options = ControllerOptions(
        policy_namespaces=tuple(name.strip() for name in policy_namespaces.split(",") if name.strip()),
        allow_local_repositories=allow_local_repositories,
        standalone=standalone,
        api_address=api_bind_address,
        metrics_address=metrics_bind_address,
        probe_address=health_probe_bind_address,
        git_cache_dir=git_cache_dir,
    )
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(_run(options, kubeconfig))
    except (ConfigError, RuntimeFailure) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)


async def _run(options: ControllerOptions, kubeconfig: Path | None) -> None:
    connection = await load_connection(kubeconfig)
    async with Client(connection, user_agent="kardinal-controller") as client:
        await Controller(options, client, clock=SystemClock()).manager.run()
