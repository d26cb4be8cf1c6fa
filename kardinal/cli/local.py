"""`kardinal local`: the local plane, controller, agent and, on request, the simulator, in one process.

A composition root: the programs are put together here exactly as in a cluster, each with an identity, a kubeconfig and
an HTTPS connection of its own; none of them can tell the difference.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import click
import orjson

from kardinal.api import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal.api.crds import definitions
from kardinal.cli.errors import CommandError
from kardinal.git import GitRunner, Repositories
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.localplane import LocalPlane, LocalPlaneError, holder
from kardinal.localplane.simulator import DELAY, Renderer, Simulator, find_renderer
from kardinal.runtime.clock import SystemClock
from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_controller.program import Controller, ControllerOptions

__all__ = ["Stack", "local", "run_stack", "stop_signals", "until_served"]

DEFAULT_PORT = 16443
SYSTEM_NAMESPACE = "kardinal-system"
INFO = "kardinal-info"
POLICY_NAMESPACE = "platform-policies"
ESTABLISHED_DEADLINE = 30.0
"""Seconds until the API server must serve the custom resources."""
DOWN_ATTEMPTS = 700
DOWN_PAUSE = 0.05
"""Seconds between two looks of `down` at a process that is ending; with the attempts, 35 s in all."""


def default_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kardinal" / "local"


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where everything listens; written to `DIR/endpoints.json` and to ConfigMap `kardinal-system/kardinal-info`."""

    server: str
    api: str
    metrics: str
    probes: str


@dataclass(frozen=True, slots=True)
class Stack:
    """What is running, and where it listens; `endpoints` is None with `--only plane`."""

    plane: LocalPlane
    endpoints: Endpoints | None


@asynccontextmanager
async def run_stack(
    directory: Path,
    *,
    port: int | None = None,
    only_plane: bool = False,
    simulate: bool = False,
    delay: timedelta | None = None,
    renderer: Renderer | None = None,
) -> AsyncIterator[Stack]:
    """Everything `kardinal local up` runs, until the block ends; `delay` and `renderer` are the simulator's."""
    async with AsyncExitStack() as stack:
        plane = await LocalPlane.start(directory, port=await asyncio.to_thread(_port, directory, port))
        stack.push_async_callback(plane.stop)
        await asyncio.to_thread(_write_private, directory / "port", str(plane.port).encode())
        await _install(plane)
        if only_plane:
            yield Stack(plane, None)
            return
        endpoints = await _start_controller(stack, plane, directory)
        if simulate:
            await _start_simulator(stack, plane, directory, delay=delay, renderer=renderer)
        await asyncio.to_thread(_write_private, directory / "endpoints.json", orjson.dumps(asdict(endpoints)))
        await _publish(plane, endpoints)
        yield Stack(plane, endpoints)


async def _install(plane: LocalPlane) -> None:
    """The custom resources and the namespaces, applied over HTTPS as an administrator would."""
    async with Client(await load_connection(plane.kubeconfig), user_agent="kardinal-local") as client:
        for definition in definitions():
            await client.apply(CUSTOM_RESOURCE_DEFINITION, definition, field_manager="kardinal-local", force=True)
        await until_served(client, {definition["metadata"]["name"] for definition in definitions()})
        for name in (SYSTEM_NAMESPACE, POLICY_NAMESPACE):
            try:
                await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            except AlreadyExists:
                continue


async def until_served(client: Client, names: set[str]) -> None:
    """Until the API server serves these custom resources, which it does a moment after it took their definitions."""
    async with (
        asyncio.timeout(ESTABLISHED_DEADLINE),
        client.watch(CUSTOM_RESOURCE_DEFINITION, initial_events=True) as events,
    ):
        async for event in events:
            conditions = event.object.get("status", {}).get("conditions", [])
            if any(entry["type"] == "Established" and entry["status"] == "True" for entry in conditions):
                names.discard(event.object["metadata"]["name"])
            if not names:
                return


async def _start_controller(stack: AsyncExitStack, plane: LocalPlane, directory: Path) -> Endpoints:
    connection = await load_connection(plane.kubeconfig_for("controller"))
    client = await stack.enter_async_context(Client(connection, user_agent="kardinal-controller"))
    options = ControllerOptions(
        policy_namespaces=(POLICY_NAMESPACE,),
        allow_local_repositories=True,
        git_cache_dir=directory / "git",
        api_address="127.0.0.1:0",
        metrics_address="127.0.0.1:0",
        probe_address="127.0.0.1:0",
    )
    controller = Controller(options, client, clock=SystemClock())
    stack.push_async_callback(controller.stop)
    await controller.start()
    return Endpoints(
        server=plane.url, api=controller.api_url, metrics=controller.metrics_url, probes=controller.probe_url
    )


async def _start_simulator(
    stack: AsyncExitStack, plane: LocalPlane, directory: Path, *, delay: timedelta | None, renderer: Renderer | None
) -> None:
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
        renderer=renderer or await find_renderer(runner),
    )
    stack.push_async_callback(simulator.stop)
    await simulator.start()


async def _publish(plane: LocalPlane, endpoints: Endpoints) -> None:
    body = {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": INFO, "namespace": SYSTEM_NAMESPACE},
        "data": {**asdict(endpoints), "version": version("kardinal")},
    }
    async with Client(await load_connection(plane.kubeconfig), user_agent="kardinal-local") as client:
        await client.apply(CONFIG_MAP, body, field_manager="kardinal-local", force=True)


def _port(directory: Path, wanted: int | None) -> int:
    """The port asked for, else the one this directory had before, so that its kubeconfig stays true."""
    if wanted is not None:
        return wanted
    try:
        return int((directory / "port").read_text())
    except (FileNotFoundError, ValueError):
        return DEFAULT_PORT


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT or SIGTERM sets; a second signal ends the process at once, as if nothing handled it."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()

    def stop(number: signal.Signals) -> None:
        stopped.set()
        loop.remove_signal_handler(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop, number)
    try:
        yield stopped
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@click.group()
def local() -> None:
    """Run kardinal on this machine, without a cluster. For trying, testing and single-node use."""


def _directory_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option(
        "--dir",
        "directory",
        type=click.Path(file_okay=False, path_type=Path),
        default=default_directory,
        show_default="$XDG_STATE_HOME/kardinal/local",
        help="Where its data, keys and kubeconfig live.",
    )(function)


@local.command()
@_directory_option
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the API server; 0 takes a free one.")
@click.option("--only", type=click.Choice(["plane"]), help="Start the API server alone.")
@click.option("--simulate", is_flag=True, help="Stand in for a GitOps tool and a kubelet.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="warning")
def up(*, directory: Path, port: int | None, only: str | None, simulate: bool, log_level: str) -> None:
    """Start in the foreground; ends cleanly with Ctrl-C."""
    if only and simulate:
        raise click.UsageError("--simulate needs the controllers: leave out --only plane")
    configure(level=log_level)

    async def main() -> None:
        with stop_signals() as stopped:
            async with run_stack(directory, port=port, only_plane=only == "plane", simulate=simulate) as stack:
                _announce(stack, simulate=simulate)
                await stopped.wait()
                click.echo("stopping", err=True)

    try:
        run(main())
    except LocalPlaneError as error:
        raise CommandError(str(error)) from error


def _announce(stack: Stack, *, simulate: bool) -> None:
    click.echo(f"export KUBECONFIG={stack.plane.kubeconfig}")
    click.echo(f"API server   {stack.plane.url}")
    if stack.endpoints:
        click.echo(f"webhook      {stack.endpoints.api}/api/v1/bundles")
        click.echo(f"metrics      {stack.endpoints.metrics}/metrics")
        click.echo(f"health       {stack.endpoints.probes}/readyz")
    if simulate:
        click.echo("simulator    stands in for a GitOps tool and a kubelet: no pods run")
    click.echo("ready; stop with Ctrl-C")


@local.command()
@_directory_option
def down(*, directory: Path) -> None:
    """Stop what `kardinal local up` runs on a directory, and wait for its end."""
    process = holder(directory)
    if process is None:
        click.echo(f"nothing runs on {directory}")
        return
    os.kill(process, signal.SIGTERM)
    _await_release(directory, process)
    click.echo(f"stopped process {process}")


def _await_release(directory: Path, process: int) -> None:
    """There is no event for the end of a process that is not our child: look again until it let go of its directory."""
    for _ in range(DOWN_ATTEMPTS):
        if holder(directory) is None:
            return
        time.sleep(DOWN_PAUSE)
    raise CommandError(f"process {process} has not ended yet", remedy=f"End it: kill -9 {process}")


@local.command()
@_directory_option
def status(*, directory: Path) -> None:
    """Say whether something runs on a directory, and where it listens."""
    process = holder(directory)
    if process is None:
        raise CommandError(f"nothing runs on {directory}", remedy=f"Start it: kardinal local up --dir {directory}")
    click.echo(f"process {process} runs on {directory}")
    click.echo(f"export KUBECONFIG={directory / 'kubeconfig'}")
    endpoints = directory / "endpoints.json"
    if endpoints.exists():
        for name, url in orjson.loads(endpoints.read_bytes()).items():
            click.echo(f"{name:<12} {url}")
