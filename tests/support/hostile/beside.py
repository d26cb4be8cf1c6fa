"""A local plane, `kardinal-controller`, a team that promotes honestly, and the hostile server, as processes.

The program is the one that is installed, with its agent and every kind of host allowed at loopback, where the hostile
ones are. A GitOps tool stands beside it (`hack/bench/gitops.py`), so that honest promotions end.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from hack.bench.subjects import Subject, run_module, run_subject, run_tool
from hack.bench.team import Site, Team
from hack.renderers.assets import find
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.objects import NAMESPACE
from kardinal_local.stack import install
from tests.support.hostile.server import address
from tests.support.smart_server import self_signed

__all__ = ["Beside", "running"]

CACHE = "256Mi"
"""Of mirrors, so that packs without an end do not fill the disk of a machine."""
_START = 60.0


@dataclass(slots=True)
class Beside:
    """The processes, and where they are. `root` has the repositories that the hostile server shows."""

    directory: Path
    client: Client
    team: Team
    server: Subject
    certificate: Path
    kubeconfig: Path
    api: str
    probes: str
    metrics: str
    process: asyncio.subprocess.Process
    namespaces: set[str] = field(default_factory=set)

    @property
    def root(self) -> Path:
        return self.directory / "shown"

    def http(self, behaviour: str) -> str:
        """Return `host:port` of the hostile server with one behaviour."""
        return f"{address(behaviour)}:{self.server.answer['http']}"

    @property
    def https(self) -> str:
        return str(self.server.answer["https"])

    async def namespace(self, name: str) -> str:
        """Let there be a namespace; returns its name."""
        if name not in self.namespaces:
            with suppress(AlreadyExists):
                await self.client.create(
                    NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )
            self.namespaces.add(name)
        return name

    async def requests(self) -> dict[str, int]:
        """Return the requests that the hostile server has answered by a behaviour, by its slug."""
        counted: dict[str, int] = await self.server.ask()
        return counted

    async def promote(self) -> float:
        """Promote one honest Bundle through three environments; returns the seconds."""
        return await self.team.walk(["honest-0"])


@asynccontextmanager
async def running(directory: Path, *, seed: int) -> AsyncIterator[Beside]:
    """Run everything until the block ends, when the first honest Bundle is Verified."""
    site = Site("honest", directory / "honest.git", (directory / "honest.git").as_uri())
    (directory / "shown").mkdir(parents=True)
    certificate = await asyncio.to_thread(self_signed, directory)
    await asyncio.to_thread(site.create, 1)
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(run_subject("plane", directory / "plane"))
        client = await stack.enter_async_context(
            Client(await load_connection(plane.kubeconfig), user_agent="kardinal-hostile")
        )
        await install(client)
        arguments = (str(directory / "shown"), str(certificate), str(seed))
        server = await stack.enter_async_context(run_module("tests.support.hostile.server", *arguments))
        kubeconfigs = plane.kubeconfig.parent
        await stack.enter_async_context(run_tool(kubeconfigs / "kubeconfig.simulator", [site.directory]))
        api, metrics, probes = (f"127.0.0.1:{_free()}" for _ in range(3))
        options = (
            f"--kubeconfig={kubeconfigs / 'kubeconfig.controller'}",
            f"--git-cache-dir={directory / 'cache'}",
            f"--git-cache-max-bytes={CACHE}",
            "--allow-local-repositories",
            "--git-transfer-max=1m",
            "--allow-step-hosts=127.0.1.*:*",
            "--allow-registries=127.0.1.*:*",
            f"--api-bind-address={api}",
            f"--metrics-bind-address={metrics}",
            f"--health-probe-bind-address={probes}",
        )
        process = await stack.enter_async_context(_program(directory, *options))
        team = Team(client, site)
        made = Beside(
            directory,
            client,
            team,
            server,
            certificate,
            plane.kubeconfig,
            f"http://{api}",
            f"http://{probes}",
            f"http://{metrics}",
            process,
        )
        await _ready(made)
        await team.grow(1)
        await made.promote()
        yield made


@asynccontextmanager
async def _program(directory: Path, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run `kardinal-controller` of this installation; what it logs is in `DIRECTORY/log`."""
    renderers = [str(found.parent) for name in ("kustomize", "helm") if (found := find(name)) is not None]
    with (directory / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(Path(sys.executable).parent / "kardinal-controller"),
            *options,
            env={"PATH": ":".join([*renderers, "/usr/local/bin", "/usr/bin", "/bin"]), "HOME": str(directory)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=asyncio.subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_START):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


async def _ready(beside: Beside) -> None:
    async with asyncio.timeout(_START), aiohttp.ClientSession() as session:
        while beside.process.returncode is None:
            with suppress(aiohttp.ClientError):
                async with session.get(f"{beside.probes}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)
    raise RuntimeError(f"the program has ended: {(beside.directory / 'log').read_text()[-2000:]}")


def _free() -> int:
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        return int(tried.getsockname()[1])
