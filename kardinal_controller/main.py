"""`kardinal-controller`: the control plane as a process.

It talks to the cluster that its kubeconfig or its service account names, and to nothing else: a controller that found
no cluster and quietly used one of its own would promote in the wrong place.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from kardinal.clock import SystemClock
from kardinal.extensions import ExtensionError, Extensions, load_extensions
from kardinal.kube import Client, ConfigError, load_connection
from kardinal.kube.in_cluster import namespace_of_pod
from kardinal.objects.text import escaped
from kardinal.promotion.api.names import SYSTEM_NAMESPACE
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.options import options_of
from kardinal.runtime.process import logging_options, run
from kardinal_controller.options import ControllerOptions
from kardinal_controller.program import ControlPlane

__all__ = ["main"]


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: KUBECONFIG, then ~/.kube/config, then the service account of the pod.",
)
@options_of(ControllerOptions)
@logging_options
def main(*, kubeconfig: Path | None, options: ControllerOptions) -> None:
    """Decide what is promoted where. Ends cleanly on SIGINT and SIGTERM."""
    options = replace(options, system_namespace=namespace_of_pod() or SYSTEM_NAMESPACE)
    try:
        run(_run(options, load_extensions(), kubeconfig))
    except (ConfigError, ExtensionError, OSError, RuntimeFailure) as error:
        click.echo(escaped(f"Error: {error}", kept="\n"), err=True)
        sys.exit(1)


async def _run(options: ControllerOptions, extensions: Extensions, kubeconfig: Path | None) -> None:
    connection = await load_connection(kubeconfig)
    async with Client(connection, user_agent="kardinal-controller") as client:
        await ControlPlane(options, client, clock=SystemClock(), extensions=extensions).manager.run()
