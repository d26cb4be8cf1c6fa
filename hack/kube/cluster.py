"""A real control plane in the foreground: etcd, API server, controller manager, and a node if asked for.

    python -m hack.kube.cluster [--nodes | --no-rollouts] [--definitions DIR] [--until-stdin-closes]

Prints the path of a kubeconfig with an administrator's client certificate once everything answers, and ends what it
started when it is interrupted, when one of the programs ends, or, with `--until-stdin-closes`, when its parent process
is gone: the operating system closes a pipe however its holder died, so nothing outlives a test run that was killed.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import yaml

from hack.kube.assets import HACK, Assets, AssetsMissing, build
from hack.kube.certificates import write_certificates
from hack.kube.programs import Layout, Program, control_plane, controller_manager, nodes
from hack.kube.readiness import JsonObject, Patience

__all__ = ["ClusterFailed", "main"]

READY_SECONDS = 60.0
STOP_SECONDS = 10.0


class ClusterFailed(Exception):
    """A program ended or did not answer; the text holds the end of its log."""


class Cluster:
    """The running programs of one control plane."""

    def __init__(self, at: Layout, assets: Assets, stack: AsyncExitStack) -> None:
        self.at = at
        self._assets = assets
        self._stack = stack
        self._processes: dict[str, asyncio.subprocess.Process] = {}

    async def run(self, *programs: Program) -> None:
        """Start programs; they end with the cluster."""
        for program in programs:
            with self._log(program.name).open("wb") as log:
                process = await asyncio.create_subprocess_exec(
                    self._assets[program.name],
                    *program.arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    # A group of its own: Ctrl-C reaches this process alone, which stops the others in order.
                    start_new_session=True,
                )
            self._processes[program.name] = process
            self._stack.push_async_callback(_end, process)

    async def ended(self) -> None:
        """Wait until a program ends by itself, which none should."""
        waits = [asyncio.create_task(process.wait()) for process in self._processes.values()]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        self.check()

    def check(self) -> None:
        """ClusterFailed when a program has ended."""
        for name, process in self._processes.items():
            if process.returncode is not None:
                tail = self._log(name).read_text(errors="replace").splitlines()[-15:]
                text = "\n".join(tail)
                raise ClusterFailed(f"{name} ended with {process.returncode}; the end of its log:\n{text}")

    def _log(self, name: str) -> Path:
        return self.at.file(f"{name}.log")


@asynccontextmanager
async def _running(
    directory: Path, *, assets: Assets, options: argparse.Namespace, definitions: Sequence[JsonObject]
) -> AsyncIterator[Cluster]:
    """Run a control plane in `directory`; it answers when this yields."""
    at = Layout(directory, *_free_ports(3))
    await asyncio.to_thread(write_certificates, directory)
    at.kubeconfig.write_text(_kubeconfig(at))
    for name in ("audit.yaml", "authentication.yaml"):
        at.file(name).write_bytes((HACK / "kube" / name).read_bytes())
    # Tests put the store back between two of them, behind the API server's back.
    at.file("store-url").write_text(at.store_url)
    async with AsyncExitStack() as stack:
        cluster = Cluster(at, assets, stack)
        await cluster.run(*control_plane(at))
        patience = Patience(await stack.enter_async_context(_session(at)), cluster.check)
        async with asyncio.timeout(READY_SECONDS):
            await patience.answers("/readyz")
            await patience.define(definitions)
            # After the definitions: its garbage collector learns of kinds when it starts, and then every 30 s only.
            await cluster.run(controller_manager(at, rollouts=not options.no_rollouts))
            await patience.answers("/api/v1/namespaces/default/serviceaccounts/default")
            if options.nodes:
                stages = [*sorted(assets.beside("kwok").glob("*.yaml")), HACK / "kwok" / "pod-broken.yaml"]
                await cluster.run(*nodes(at, stages=stages))
                await patience.node("node-1")
        yield cluster


def _session(at: Layout) -> aiohttp.ClientSession:
    context = ssl.create_default_context(cafile=str(at.file("ca.crt")))
    context.load_cert_chain(at.file("admin.crt"), at.file("admin.key"))
    timeout = aiohttp.ClientTimeout(total=READY_SECONDS)
    return aiohttp.ClientSession(at.url, connector=aiohttp.TCPConnector(ssl=context), timeout=timeout)


def _kubeconfig(at: Layout) -> str:
    name = "kardinal-test"
    cluster = {"server": at.url, "certificate-authority": str(at.file("ca.crt"))}
    user = {"client-certificate": str(at.file("admin.crt")), "client-key": str(at.file("admin.key"))}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    text: str = yaml.safe_dump(document, sort_keys=False)
    return text


async def _end(process: asyncio.subprocess.Process) -> None:
    # Nothing of it is kept, so it is not asked whether it would like to finish first.
    if process.returncode is None:
        process.kill()
    async with asyncio.timeout(STOP_SECONDS):
        await process.wait()


def _free_ports(number: int) -> list[int]:
    held = [socket.socket() for _ in range(number)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in held]
    finally:
        for one in held:
            one.close()


async def _stdin_closes() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        await reader.read()
    finally:
        transport.close()


async def _interrupted() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


async def _serve(options: argparse.Namespace, assets: Assets, directory: Path) -> None:
    paths = sorted(options.definitions.glob("*.yaml")) if options.definitions else []
    definitions = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in paths]
    ends = [asyncio.create_task(_interrupted())]
    if options.until_stdin_closes:
        ends.append(asyncio.create_task(_stdin_closes()))
    served = asyncio.create_task(_until_it_ends(options, assets, directory, definitions))
    await asyncio.wait([*ends, served], return_when=asyncio.FIRST_COMPLETED)
    for task in (*ends, served):
        task.cancel()
    results = await asyncio.gather(*ends, served, return_exceptions=True)
    if isinstance(results[-1], Exception):
        raise results[-1]


async def _until_it_ends(
    options: argparse.Namespace, assets: Assets, directory: Path, definitions: Sequence[JsonObject]
) -> None:
    async with _running(directory, assets=assets, options=options, definitions=definitions) as cluster:
        print(cluster.at.kubeconfig, flush=True)
        await cluster.ended()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.kube.cluster", description=__doc__.splitlines()[0])
    rollouts = parser.add_mutually_exclusive_group()
    rollouts.add_argument("--nodes", action="store_true", help="run a scheduler and one fake node")
    rollouts.add_argument("--no-rollouts", action="store_true", help="leave Deployments to whoever else moves them")
    parser.add_argument("--definitions", type=Path, metavar="DIR", help="CustomResourceDefinitions to start with")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    try:
        assets = build()
        with tempfile.TemporaryDirectory(prefix="kardinal-kube-") as directory:
            asyncio.run(_serve(options, assets, Path(directory)))
    except (AssetsMissing, ClusterFailed, TimeoutError) as error:
        print(str(error) or f"the control plane did not answer within {READY_SECONDS:g} s", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
