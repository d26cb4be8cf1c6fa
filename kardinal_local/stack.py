"""Run the local plane, controller, agent and, on request, the simulator in one process, as `kardinal local up` does.

This is a composition root. Each program has its own identity, kubeconfig and HTTPS connection, so it runs as it does in
a cluster. The plane is held, so it is not ready until the custom resources are installed and the programs run.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from kardinal.clock import SystemClock
from kardinal.extensions import load_extensions
from kardinal.git import GitRunner, Repositories
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.objects import CONFIG_MAP, NAMESPACE
from kardinal.promotion.api.crds import definitions
from kardinal.promotion.api.names import SYSTEM_NAMESPACE
from kardinal_agent.options import AgentOptions
from kardinal_controller.options import ControllerOptions
from kardinal_controller.program import ControlPlane
from kardinal_controller.ui.own_page import OwnPage
from kardinal_local.definitions import INSTALLER, install_definitions, until_served
from kardinal_local.plane import LocalPlane
from kardinal_local.rights import manifests
from kardinal_local.serving import PlaneOptions, run_plane, write_private
from kardinal_local.simulator import DELAY, DirectoryRenderer, Simulator, find_renderer, forget_limits

__all__ = [
    "POLICY_NAMESPACE",
    "Endpoints",
    "Programs",
    "Stack",
    "install",
    "run_programs",
    "run_stack",
    "start_simulator",
    "until_served",
]

ENDPOINTS = "endpoints.json"
INFO = "kardinal-info"
POLICY_NAMESPACE = "platform-policies"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The URLs of the servers, such as `http://127.0.0.1:8081`.

    They are written to `endpoints.json` in the directory, and to the ConfigMap `kardinal-system/kardinal-info`.
    `chain_metrics` is where those of supply chains are; None if they do not run.
    """

    server: str
    api: str
    metrics: str
    probes: str
    chain_metrics: str | None = None

    def to_json(self) -> dict[str, str]:
        """Return the URLs by name, without those that are absent."""
        return {name: url for name, url in asdict(self).items() if url is not None}


@dataclass(frozen=True, slots=True)
class Programs:
    """The running programs: the URLs of their servers, and the web page of the user of the plane."""

    endpoints: Endpoints
    page: OwnPage


@dataclass(frozen=True, slots=True)
class Stack:
    """A running local plane, the URLs of its programs, and its web page."""

    plane: LocalPlane
    endpoints: Endpoints
    page: OwnPage


@asynccontextmanager
async def run_stack(
    directory: Path,
    *,
    options: PlaneOptions,
    simulate: bool = False,
    delay: timedelta | None = None,
    renderer: DirectoryRenderer | None = None,
) -> AsyncIterator[Stack]:
    """Run the plane and the programs of `kardinal local up` until the block ends.

    `simulate` starts the simulator; defaults to False. `delay` and `renderer` are passed to the simulator; they default
    to 1 s and the renderer that `find_renderer` finds.
    """
    async with (
        run_plane(directory, options, hold=True) as plane,
        run_programs(plane, directory, simulate=simulate, delay=delay, renderer=renderer) as programs,
    ):
        yield Stack(plane, programs.endpoints, programs.page)


class ServedPlane(Protocol):
    """The plane as its programs use it. It may run in another process."""

    @property
    def url(self) -> str: ...

    def kubeconfig_for(self, identity: str) -> Path:
        """Return the path of the kubeconfig of an identity, such as `controller`."""
        ...

    async def release(self) -> None:
        """Make the held plane ready."""
        ...


@asynccontextmanager
async def run_programs(
    plane: ServedPlane,
    directory: Path,
    *,
    simulate: bool,
    allow_bypassing_hooks: bool = False,
    scm_poll_interval: float = 300.0,
    supply_chains: bool = False,
    ytt: Path | None = None,
    delay: timedelta | None = None,
    renderer: DirectoryRenderer | None = None,
) -> AsyncIterator[Programs]:
    """Install the custom resources on a held plane, start the programs, and release the plane; stop after the block.

    `allow_bypassing_hooks` and `scm_poll_interval`, in seconds, are options of the agent; they default to False and
    300 s. `supply_chains` starts their program as well, with the program `ytt`; defaults to False. `delay` and
    `renderer` are as in `run_stack`.
    """
    async with AsyncExitStack() as stack:
        connection = await load_connection(plane.kubeconfig_for("installer"))
        async with Client(connection, user_agent="kardinal-local") as installer:
            await install(installer)
            before = await asyncio.to_thread(_last_addresses, directory)
            controller = await _start_controller(
                stack,
                plane,
                directory,
                addresses=before,
                allow_bypassing_hooks=allow_bypassing_hooks,
                scm_poll_interval=scm_poll_interval,
            )
            endpoints = Endpoints(
                server=plane.url, api=controller.api_url, metrics=controller.metrics_url, probes=controller.probe_url
            )
            if supply_chains:
                start_supply_chains = await asyncio.to_thread(_import_supply_chains)
                kubeconfig = plane.kubeconfig_for("supplychain")
                metrics = await start_supply_chains(
                    stack, installer, kubeconfig, ytt=ytt, metrics_address=before["chain_metrics"]
                )
                endpoints = replace(endpoints, chain_metrics=metrics)
            if simulate:
                await start_simulator(stack, plane, directory, delay=delay, renderer=renderer)
            else:
                await forget_limits(installer)
            await asyncio.to_thread(write_private, directory / ENDPOINTS, orjson.dumps(endpoints.to_json()))
            await _publish(installer, endpoints)
        await plane.release()
        yield Programs(endpoints, await _start_page(stack, plane, controller))


async def install(client: Client) -> None:
    """Apply the CRDs, the namespaces and the RBAC rules of the programs; the CRDs are served when it returns."""
    await install_definitions(client, await asyncio.to_thread(definitions))
    for name in (SYSTEM_NAMESPACE, POLICY_NAMESPACE):
        try:
            await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExists:
            continue
    for resource, manifest in manifests():
        await client.apply(resource, manifest, field_manager=INSTALLER, force=True)


async def _start_controller(
    stack: AsyncExitStack,
    plane: ServedPlane,
    directory: Path,
    *,
    addresses: Mapping[str, str],
    allow_bypassing_hooks: bool,
    scm_poll_interval: float,
) -> ControlPlane:
    connection = await load_connection(plane.kubeconfig_for("controller"))
    client = await stack.enter_async_context(Client(connection, user_agent="kardinal-controller"))
    options = ControllerOptions(
        policy_namespaces=(POLICY_NAMESPACE,),
        agent=AgentOptions(
            allow_local_repositories=True,
            allow_bypassing_hooks=allow_bypassing_hooks,
            scm_poll_interval=scm_poll_interval,
            quote_namespaces=("*",),
            git_cache_dir=directory / "git",
        ),
        api_address=addresses["api"],
        metrics_address=addresses["metrics"],
        # The server listens on 127.0.0.1 only.
        metrics_auth="none",
        probe_address=addresses["probes"],
    )
    extensions = await asyncio.to_thread(load_extensions)
    controller = ControlPlane(options, client, clock=SystemClock(), extensions=extensions)
    stack.push_async_callback(controller.stop)
    await controller.start()
    return controller


def _import_supply_chains() -> Callable[..., Awaitable[str]]:
    """Import what starts supply chains, which takes a fifth of a second."""
    from kardinal_local.supply_chains import start_supply_chains  # noqa: PLC0415

    return start_supply_chains


async def _start_page(stack: AsyncExitStack, plane: ServedPlane, controller: ControlPlane) -> OwnPage:
    """Start the web page on the informers of the controller, with the identity of the user of the plane."""
    connection = await load_connection(plane.kubeconfig_for("admin"))
    client = await stack.enter_async_context(Client(connection, user_agent="kardinal-ui"))
    page = OwnPage(client, controller.caches, clock=SystemClock())
    stack.push_async_callback(page.stop)
    await page.start()
    return page


def _last_addresses(directory: Path) -> dict[str, str]:
    """Return the last addresses of the servers, so that URLs configured elsewhere stay valid; else port 0, any port.

    For example `{"api": "127.0.0.1:41873", "metrics": "127.0.0.1:0", …}`.
    """
    try:
        before = orjson.loads((directory / ENDPOINTS).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        before = {}
    addresses = {}
    for name in ("api", "metrics", "probes", "chain_metrics"):
        port = urlsplit(str(before.get(name, ""))).port or 0
        addresses[name] = f"127.0.0.1:{port if _is_free(port) else 0}"
    return addresses


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


async def start_simulator(
    stack: AsyncExitStack,
    plane: ServedPlane,
    directory: Path,
    *,
    delay: timedelta | None,
    renderer: DirectoryRenderer | None,
) -> None:
    """Start the simulator; it is stopped when `stack` is closed."""
    connection = await load_connection(plane.kubeconfig_for("simulator"))
    client = await stack.enter_async_context(Client(connection, user_agent="kardinal-simulator"))
    runner = GitRunner(workers=2)
    stack.callback(runner.close)
    repositories = Repositories(directory / "simulator-git", runner=runner, clock=SystemClock(), allow_local=True)
    stack.push_async_callback(repositories.close)
    simulator = Simulator(
        client,
        repositories,
        runner=runner,
        clock=SystemClock(),
        delay=DELAY if delay is None else delay,
        renderer=renderer or await find_renderer(runner, directory / "simulator-exports"),
    )
    stack.push_async_callback(simulator.stop)
    await simulator.start()


async def _publish(client: Client, endpoints: Endpoints) -> None:
    """Write the endpoints to the ConfigMap `kardinal-info`."""
    body = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": INFO, "namespace": SYSTEM_NAMESPACE},
        "data": endpoints.to_json(),
    }
    await client.apply(CONFIG_MAP, body, field_manager=INSTALLER, force=True)
