"""`kardinal-controller`: the control plane as a process.

It talks to the cluster that its kubeconfig or its service account names, and to nothing else: a controller that found
no cluster and quietly used one of its own would promote in the wrong place.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from kardinal.api.names import SYSTEM_NAMESPACE
from kardinal.extensions import ExtensionError, Extensions, load_extensions
from kardinal.git.options import (
    git_bypassing_hooks_option,
    git_cache_size_option,
    git_hosts_option,
    git_insecure_option,
    git_transfer_option,
    registries_option,
    rendering_options,
    scm_poll_option,
    step_hosts_option,
)
from kardinal.kube import Client, ConfigError, load_connection
from kardinal.kube.in_cluster import namespace_of_pod
from kardinal.objects.text import escaped
from kardinal.runtime.clock import SystemClock
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.process import (
    address_option,
    git_cache_option,
    health_options,
    logging_options,
    metrics_auth_option,
    run,
)
from kardinal_controller.program import Controller, ControllerOptions

__all__ = ["main"]


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
@git_bypassing_hooks_option
@git_hosts_option
@git_insecure_option
@git_transfer_option
@rendering_options
@scm_poll_option
@step_hosts_option
@registries_option
@click.option("--standalone/--no-standalone", default=True, help="Also execute the promotions that no shard claims.")
@health_options
@address_option("--api-bind-address", default=":8083", help="Where Bundles are posted to.")
@click.option(
    "--api-connections-per-address",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Connections of one client address; 0 for any number, as behind an ingress, whose address all have.",
)
@address_option("--metrics-bind-address", default=":8080", help="/metrics")
@metrics_auth_option
@address_option("--health-probe-bind-address", default=":8081", help="/healthz and /readyz")
@git_cache_option
@git_cache_size_option
@logging_options
def main(
    *,
    kubeconfig: Path | None,
    policy_namespaces: str,
    allow_local_repositories: bool,
    allow_bypassing_hooks: bool,
    allow_git_hosts: tuple[str, ...],
    allow_insecure_git: tuple[str, ...],
    git_transfer_max: float,
    allow_remote_bases: bool,
    allow_helm_inflation: bool,
    require_renderer_isolation: bool,
    scm_poll_interval: float,
    allow_step_hosts: tuple[str, ...],
    allow_registries: tuple[str, ...],
    standalone: bool,
    health_namespaces: tuple[str, ...],
    quote_namespaces: tuple[str, ...],
    api_bind_address: str,
    api_connections_per_address: int,
    metrics_bind_address: str,
    metrics_auth: Literal["token", "none"],
    health_probe_bind_address: str,
    git_cache_dir: Path,
    git_cache_max_bytes: int,
) -> None:
    """Decide what is promoted where. Ends cleanly on SIGINT and SIGTERM."""
    options = ControllerOptions(
        policy_namespaces=tuple(name.strip() for name in policy_namespaces.split(",") if name.strip()),
        allow_local_repositories=allow_local_repositories,
        allow_bypassing_hooks=allow_bypassing_hooks,
        allow_git_hosts=allow_git_hosts,
        allow_insecure_git=allow_insecure_git,
        git_transfer_max=git_transfer_max,
        allow_remote_bases=allow_remote_bases,
        allow_helm_inflation=allow_helm_inflation,
        require_renderer_isolation=require_renderer_isolation,
        scm_poll_interval=scm_poll_interval,
        allow_step_hosts=allow_step_hosts,
        allow_registries=allow_registries,
        standalone=standalone,
        health_namespaces=health_namespaces,
        quote_namespaces=quote_namespaces,
        api_address=api_bind_address,
        api_connections_per_address=api_connections_per_address,
        metrics_address=metrics_bind_address,
        metrics_auth=metrics_auth,
        probe_address=health_probe_bind_address,
        system_namespace=namespace_of_pod() or SYSTEM_NAMESPACE,
        git_cache_dir=git_cache_dir,
        git_cache_max_bytes=git_cache_max_bytes,
    )
    try:
        run(_run(options, load_extensions(), kubeconfig))
    except (ConfigError, ExtensionError, RuntimeFailure) as error:
        click.echo(escaped(f"Error: {error}", kept="\n"), err=True)
        sys.exit(1)


async def _run(options: ControllerOptions, extensions: Extensions, kubeconfig: Path | None) -> None:
    connection = await load_connection(kubeconfig)
    async with Client(connection, user_agent="kardinal-controller") as client:
        await Controller(options, client, clock=SystemClock(), extensions=extensions).manager.run()
