"""Run the local plane, controller, agent and, on request, the simulator in one process, as `kardinal local up` does.

A composition root: the programs are put together here exactly as in a cluster, each with an identity, a kubeconfig and
an HTTPS connection of its own; none of them can tell the difference. The plane is held, and so not ready, until what
they need is installed and they run.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import orjson

from kardinal.api.crds import definitions
from kardinal.api.names import SYSTEM_NAMESPACE
from kardinal.extensions import load_extensions
from kardinal.git import GitRunner, Repositories
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal.runtime.clock import SystemClock
from kardinal_controller.program import Controller, ControllerOptions
from kardinal_local.plane import LocalPlane
from kardinal_local.rights import manifests
from kardinal_local.serving import PlaneOptions, run_plane, write_private
from kardinal_local.simulator import DELAY, Renderer, Simulator, find_renderer, forget_limits

__all__ = ["POLICY_NAMESPACE", "Endpoints", "Stack", "run_programs", "run_stack", "start_simulator", "until_served"]

ENDPOINTS = "endpoints.json"
INFO = "kardinal-info"
POLICY_NAMESPACE = "platform-policies"
ESTABLISHED_DEADLINE = 30.0
"""Seconds until the API server must serve the custom resources."""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """The listen addresses, written to `DIR/endpoints.json` and to ConfigMap `kardinal-system/kardinal-info`."""

    server: str
    api: str
    metrics: str
    probes: str


@dataclass(frozen=True, slots=True)
class Stack:
    """A local plane with its programs, and where they listen."""

    plane: LocalPlane
    endpoints: Endpoints


@asynccontextmanager
async def run_stack(
    directory: Path,
    *,
    options: PlaneOptions,
    simulate: bool = False,
    delay: timedelta | None = None,
    renderer: Renderer | None = None,
) -> AsyncIterator[Stack]:
    """Run everything that `kardinal local up` runs until the block ends; `delay` and `renderer` are the simulator's."""
    async with (
        run_plane(directory, options, hold=True) as plane,
        run_programs(plane, directory, simulate=simulate, delay=delay, renderer=renderer) as endpoints,
    ):
        yield Stack(plane, endpoints)


class ServedPlane(Protocol):
    """A plane as its programs need it; it may be another process."""

    @property
    def url(self) -> str: ...

    def kubeconfig_for(self, identity: str) -> Path:
        """Return the path of the kubeconfig of one identity."""
        ...

    async def release(self) -> None:
        """Be ready."""
        ...


@asynccontextmanager
async def run_programs(
    plane: ServedPlane,
    directory: Path,
    *,
    simulate: bool,
    allow_bypassing_hooks: bool = False,
    scm_poll_interval: float = 300.0,
    delay: timedelta | None = None,
    renderer: Renderer | None = None,
) -> AsyncIterator[Endpoints]:
    """Install what the programs need on a held plane, run them until the block ends, and release the plane."""
    async with AsyncExitStack() as stack:
        connection = await load_connection(plane.kubeconfig_for("installer"))
        async with Client(connection, user_agent="kardinal-local") as installer:
            await _install(installer)
            endpoints = await _start_controller(
                stack,
                plane,
                directory,
                allow_bypassing_hooks=allow_bypassing_hooks,
                scm_poll_interval=scm_poll_interval,
            )
            if simulate:
                await start_simulator(stack, plane, directory, delay=delay, renderer=renderer)
            else:
                await forget_limits(installer)
            await asyncio.to_thread(write_private, directory / ENDPOINTS, orjson.dumps(asdict(endpoints)))
            await _publish(installer, endpoints)
        await plane.release()
        yield endpoints


async def _install(client: Client) -> None:
    """Apply the custom resources, the namespaces and the rights of the programs, and wait until they are served."""
    wanted = await asyncio.to_thread(definitions)
    for definition in wanted:
        await client.apply(CUSTOM_RESOURCE_DEFINITION, definition, field_manager="kardinal-local", force=True)
    await until_served(client, {definition["metadata"]["name"] for definition in wanted})
    for name in (SYSTEM_NAMESPACE, POLICY_NAMESPACE):
        try:
            await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        except AlreadyExists:
            continue
    for resource, manifest in manifests():
        await client.apply(resource, manifest, field_manager="kardinal-local", force=True)


async def until_served(client: Client, names: set[str]) -> None:
    """Until the API server serves these custom resources, which it does a moment after it took their definitions."""
    async with (
        asyncio.timeout(ESTABLISHED_DEADLINE),
        client.watch(CUSTOM_RESOURCE_DEFINITION, initial_events=True) as events,
    ):
        async for event in events:
            # A real API server sends null for a list that it has not filled yet.
            conditions = event.object.get("status", {}).get("conditions") or []
            if any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions):
                names.discard(event.object["metadata"]["name"])
            if not names:
                return


async def _start_controller(
    stack: AsyncExitStack,
    plane: ServedPlane,
    directory: Path,
    *,
    allow_bypassing_hooks: bool,
    scm_poll_interval: float,
) -> Endpoints:
    before = await asyncio.to_thread(_last_addresses, directory)
    connection = await load_connection(plane.kubeconfig_for("controller"))
    client = await stack.enter_async_context(Client(connection, user_agent="kardinal-controller"))
    options = ControllerOptions(
        policy_namespaces=(POLICY_NAMESPACE,),
        allow_local_repositories=True,
        allow_bypassing_hooks=allow_bypassing_hooks,
        scm_poll_interval=scm_poll_interval,
        quote_namespaces=("*",),
        git_cache_dir=directory / "git",
        api_address=before["api"],
        metrics_address=before["metrics"],
        # It listens on this machine alone.
        metrics_auth="none",
        probe_address=before["probes"],
    )
    extensions = await asyncio.to_thread(load_extensions)
    controller = Controller(options, client, clock=SystemClock(), extensions=extensions)
    stack.push_async_callback(controller.stop)
    await controller.start()
    return Endpoints(
        server=plane.url, api=controller.api_url, metrics=controller.metrics_url, probes=controller.probe_url
    )


def _last_addresses(directory: Path) -> dict[str, str]:
    """Return where the programs listened before, so that what was configured with it stays true; else any free port."""
    try:
        before = orjson.loads((directory / ENDPOINTS).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        before = {}
    addresses = {}
    for name in ("api", "metrics", "probes"):
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
    stack: AsyncExitStack, plane: ServedPlane, directory: Path, *, delay: timedelta | None, renderer: Renderer | None
) -> None:
    """Start the simulator, which ends with `stack`."""
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
    """Write to a ConfigMap where everything listens."""
    body = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": INFO, "namespace": SYSTEM_NAMESPACE},
        "data": asdict(endpoints),
    }
    await client.apply(CONFIG_MAP, body, field_manager="kardinal-local", force=True)
