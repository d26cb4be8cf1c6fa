"""`kardinal-supplychain`: the controllers of supply chains as a process.

It talks to the cluster that its kubeconfig or its service account names, and needs the kinds of `crds/supplychain/`
there.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kardinal.clock import SystemClock
from kardinal.kube import Client, ConfigError, load_connection
from kardinal.objects.text import escaped
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.options import options_of
from kardinal.runtime.process import logging_options, run
from kardinal_supplychain.options import SupplyChainOptions
from kardinal_supplychain.program import NAME, SupplyChains

__all__ = ["main"]


@click.command(context_settings={"show_default": True})
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: KUBECONFIG, then ~/.kube/config, then the service account of the pod.",
)
@options_of(SupplyChainOptions)
@logging_options
def main(*, kubeconfig: Path | None, options: SupplyChainOptions) -> None:
    """Stamp what supply chains and deliveries say. Ends cleanly on SIGINT and SIGTERM."""
    try:
        run(_run(options, kubeconfig))
    except (ConfigError, OSError, RuntimeFailure) as error:
        click.echo(escaped(f"Error: {error}", kept="\n"), err=True)
        sys.exit(1)


async def _run(options: SupplyChainOptions, kubeconfig: Path | None) -> None:
    connection = await load_connection(kubeconfig)
    async with Client(connection, user_agent=NAME) as client:
        await SupplyChains(options, client, clock=SystemClock()).manager.run()
