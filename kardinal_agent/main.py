"""`kardinal-agent`: execute the promotions of one shard in the cluster of the shard.

PromotionSteps are read from the control plane, and their statuses are written there. Secrets and workloads are read
from the agent's own cluster: the one in `--kubeconfig`, otherwise the cluster in which it runs as a pod, otherwise that
of the control plane. The default kubeconfig of a person (`KUBECONFIG`, `~/.kube/config`) is not used for it, because it
may name any other cluster.

Exit codes: 0 after SIGINT or SIGTERM, 1 when something failed, 2 for a wrong command line.
"""

from __future__ import annotations

import os
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import click

from kardinal.clock import SystemClock
from kardinal.extensions import ExtensionError, Extensions, load_extensions
from kardinal.kube import Client, ConfigError, load_connection
from kardinal.objects.text import escaped
from kardinal.runtime import RuntimeFailure
from kardinal.runtime.options import options_of
from kardinal.runtime.process import logging_options, run
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.options import AgentOptions
from kardinal_agent.program import Agent

__all__ = ["main"]

_file_option = partial(click.option, type=click.Path(dir_okay=False, exists=True, path_type=Path))


@click.command(context_settings={"show_default": True})
@_file_option("--control-plane-kubeconfig", help="Where PromotionSteps come from. Default: as kubectl finds a cluster.")
@_file_option(
    "--kubeconfig",
    help="Where Secrets and workloads are. Default: the cluster this pod runs in, else the control plane's.",
)
@options_of(AgentOptions)
@logging_options
def main(*, control_plane_kubeconfig: Path | None, kubeconfig: Path | None, options: AgentOptions) -> None:
    """Execute the promotions of one shard. Ends cleanly on SIGINT and SIGTERM."""
    try:
        _prepare(options.git_cache_dir)
        run(_run(options, load_extensions(), control_plane=control_plane_kubeconfig, own=kubeconfig))
    except (ConfigError, ConfigurationError, ExtensionError, RuntimeFailure, OSError) as error:
        click.echo(escaped(f"Error: {error}", kept="\n"), err=True)
        sys.exit(1)


async def _run(options: AgentOptions, extensions: Extensions, *, control_plane: Path | None, own: Path | None) -> None:
    async with AsyncExitStack() as stack:
        client = await _connect(stack, control_plane)
        local = await _connect(stack, own) if own or (control_plane and _in_cluster()) else None
        agent = Agent(options, client, clock=SystemClock(), extensions=extensions, local_client=local)
        await agent.manager.run()


async def _connect(stack: AsyncExitStack, kubeconfig: Path | None) -> Client:
    connection = await load_connection(kubeconfig)
    return await stack.enter_async_context(Client(connection, user_agent="kardinal-agent"))


def _in_cluster() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def _prepare(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"{directory} cannot be used for mirrors ({error.strerror}): pass --git-cache-dir with a writable directory"
        ) from None
