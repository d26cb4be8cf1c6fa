"""`kardinal-agent`: the promotions of one shard, executed where the shard is.

PromotionSteps come from the control plane, and every status goes there. Secrets and workloads are those of the
agent's own cluster: the one of `--kubeconfig`, else the one whose pod this is, else the control plane's. The kubeconfig
of the person who starts it is not looked at for that, because the cluster it names may be any other.

Exit codes: 0 after SIGINT or SIGTERM, 1 when something failed, 2 for a wrong command line.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Literal

import click

from kardinal.extensions import ExtensionError, Extensions, load_extensions
from kardinal.git.options import (
    git_bypassing_hooks_option,
    git_cache_size_option,
    git_hosts_option,
    git_insecure_option,
    git_transfer_option,
    rendering_options,
    scm_poll_option,
    step_hosts_option,
)
from kardinal.kube import Client, ConfigError, load_connection
from kardinal.objects.text import escaped
from kardinal.runtime import RuntimeFailure, SystemClock
from kardinal.runtime.process import (
    address_option,
    git_cache_option,
    health_options,
    logging_options,
    metrics_auth_option,
    run,
)
from kardinal_agent.errors import ConfigurationError
from kardinal_agent.program import Agent, AgentOptions

__all__ = ["main"]

_SHARD = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")

_PAIR = re.compile(rf"({_SHARD.pattern})=({_SHARD.pattern})")


def _checked_shard(_: click.Context, __: click.Parameter, value: str) -> str:
    if not _SHARD.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a shard: use up to 63 lower-case letters, digits and '-'")
    return value


def _checked_namespaces(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    mapped: dict[str, str] = {}
    for value in values:
        pair = _PAIR.fullmatch(value)
        if pair is None or pair[1] in mapped:
            raise click.BadParameter(f"{value!r} is not HUB=LOCAL, two namespaces, each HUB once")
        mapped[pair[1]] = pair[2]
    return mapped


_file_option = partial(click.option, type=click.Path(dir_okay=False, exists=True, path_type=Path))


@click.command(context_settings={"show_default": True})
@click.option("--shard", required=True, callback=_checked_shard, help="The environments' shard to serve.")
@_file_option("--control-plane-kubeconfig", help="Where PromotionSteps come from. Default: as kubectl finds a cluster.")
@_file_option(
    "--kubeconfig",
    help="Where Secrets and workloads are. Default: the cluster this pod runs in, else the control plane's.",
)
@click.option("--namespace", "-n", help="Serve the PromotionSteps of one namespace only.")
@click.option("--allow-local-repositories", is_flag=True, help="Accept file:// URLs and paths as repositories.")
@git_bypassing_hooks_option
@health_options
@git_hosts_option
@git_insecure_option
@git_transfer_option
@rendering_options
@scm_poll_option
@step_hosts_option
@click.option(
    "--namespace-map",
    multiple=True,
    metavar="HUB=LOCAL",
    callback=_checked_namespaces,
    help="Read the Secrets of the control plane's namespace HUB from LOCAL here. Default: from the one of its name.",
)
@address_option("--metrics-bind-address", default=":8085", help="/metrics")
@metrics_auth_option
@address_option("--health-probe-bind-address", default=":8086", help="/healthz and /readyz")
@git_cache_option
@git_cache_size_option
@logging_options
def main(
    *,
    shard: str,
    control_plane_kubeconfig: Path | None,
    kubeconfig: Path | None,
    namespace: str | None,
    allow_local_repositories: bool,
    allow_bypassing_hooks: bool,
    health_namespaces: tuple[str, ...],
    quote_namespaces: tuple[str, ...],
    allow_git_hosts: tuple[str, ...],
    allow_insecure_git: tuple[str, ...],
    git_transfer_max: float,
    allow_remote_bases: bool,
    allow_helm_inflation: bool,
    require_renderer_isolation: bool,
    scm_poll_interval: float,
    allow_step_hosts: tuple[str, ...],
    namespace_map: dict[str, str],
    metrics_bind_address: str,
    metrics_auth: Literal["token", "none"],
    health_probe_bind_address: str,
    git_cache_dir: Path,
    git_cache_max_bytes: int,
) -> None:
    """Execute the promotions of one shard. Ends cleanly on SIGINT and SIGTERM."""
    options = AgentOptions(
        git_cache_dir=git_cache_dir,
        git_cache_max_bytes=git_cache_max_bytes,
        shard=shard,
        namespace=namespace,
        allow_local_repositories=allow_local_repositories,
        allow_bypassing_hooks=allow_bypassing_hooks,
        health_namespaces=health_namespaces,
        quote_namespaces=quote_namespaces,
        allow_git_hosts=allow_git_hosts,
        allow_insecure_git=allow_insecure_git,
        git_transfer_max=git_transfer_max,
        allow_remote_bases=allow_remote_bases,
        allow_helm_inflation=allow_helm_inflation,
        require_renderer_isolation=require_renderer_isolation,
        scm_poll_interval=scm_poll_interval,
        allow_step_hosts=allow_step_hosts,
        namespace_map=namespace_map,
        metrics_address=metrics_bind_address,
        metrics_auth=metrics_auth,
        probe_address=health_probe_bind_address,
    )
    try:
        _prepare(git_cache_dir)
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
