"""The processes under test, and what the operating system and their API server count of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

__all__ = [
    "PROGRAMS",
    "Cluster",
    "Request",
    "Requests",
    "Subject",
    "difference",
    "run_apart",
    "run_beside_tool",
    "run_git_server",
    "run_subject",
]

DEADLINE = 120.0
PROGRAMS = "kardinal-controller"
"""The user of the API that controller and agent are in one process."""


class Request(NamedTuple):
    """The requests that are counted together; `user` is a service account, or a program where these have none."""

    user: str
    verb: str
    resource: str

    @property
    def writes(self) -> bool:
        return self.verb in ("create", "update", "patch", "delete", "deletecollection")


Requests = Counter[Request]


@dataclass(slots=True)
class Subject:
    """A process under test."""

    process: asyncio.subprocess.Process
    answer: Mapping[str, Any]
    """The first line that it wrote."""

    @property
    def kubeconfig(self) -> Path:
        return Path(self.answer["kubeconfig"])

    async def ask(self) -> Any:
        """Return what a process with an API server has counted, as JSON."""
        if self.process.stdin is None:
            raise RuntimeError("the process under test has no standard input")
        self.process.stdin.write(b"\n")
        return await _line(self.process)

    def cpu(self, *, children: bool = True) -> float:
        """Seconds of CPU used so far, with those of children that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11 : 15 if children else 13]) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Cluster:
    """An API server, the programs, and what stands in for a GitOps tool, each a process of its own."""

    def __init__(self, server: Subject, programs: Subject, *, log: Path | None = None) -> None:
        self.server = server
        """The API server; a real one is a child of this process."""
        self.programs = programs
        """Controller and agent."""
        self._log = log

    @property
    def kubeconfig(self) -> Path:
        return self.programs.kubeconfig

    async def requests(self) -> Requests:
        """Return the requests to the API server so far."""
        counted: Requests = Counter()
        if self._log is not None:
            for line in (await asyncio.to_thread(self._log.read_bytes)).splitlines():
                counted[_logged(orjson.loads(line))] += 1
            return counted
        for user, verb, resource, subresource, count in await self.server.ask():
            counted[Request(user.rpartition(":")[2], verb, _joined(resource, subresource))] += count
        return counted


def difference(after: Requests, before: Requests) -> Requests:
    """Return what was asked between two counts."""
    return Counter({key: count - before[key] for key, count in after.items() if count > before[key]})


@asynccontextmanager
async def run_subject(role: str, directory: Path, kubeconfigs: Path | None = None) -> AsyncIterator[Subject]:
    """Run a role of `hack/bench/serve.py`."""
    arguments = (str(directory), *([str(kubeconfigs)] * bool(kubeconfigs)))
    async with _module("hack.bench.serve", role, *arguments) as subject:
        yield subject


@asynccontextmanager
async def run_apart(directory: Path) -> AsyncIterator[Cluster]:
    """Run a local plane, the programs and the simulator, each in a process of its own."""
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(run_subject("plane", directory / "plane"))
        kubeconfigs = plane.kubeconfig.parent
        programs = await stack.enter_async_context(run_subject("programs", directory / "programs", kubeconfigs))
        await stack.enter_async_context(run_subject("simulator", directory / "simulator", kubeconfigs))
        yield Cluster(plane, programs)


@asynccontextmanager
async def run_beside_tool(directory: Path, repositories: Sequence[Path], *, api: str) -> AsyncIterator[Cluster]:
    """Run an API server (`plane` or `real`), the programs, and `hack/bench/gitops.py` on repositories."""
    async with AsyncExitStack() as stack:
        log: Path | None = None
        if api == "plane":
            server = await stack.enter_async_context(run_subject("plane", directory / "plane"))
            kubeconfigs = server.kubeconfig.parent
            tool = kubeconfigs / "kubeconfig.simulator"
        else:
            server = await stack.enter_async_context(_real_server())
            kubeconfigs = tool = server.kubeconfig
            log = kubeconfigs.with_name("audit.log")
        programs = await stack.enter_async_context(run_subject("programs", directory / "programs", kubeconfigs))
        await stack.enter_async_context(_module("hack.bench.gitops", str(tool), *map(str, repositories)))
        yield Cluster(server, programs, log=log)


@asynccontextmanager
async def run_git_server(directory: Path) -> AsyncIterator[tuple[Subject, str]]:
    """Serve the repositories of a directory; yields the process and its URL."""
    async with _module("hack.bench.git_server", str(directory)) as subject:
        yield subject, subject.answer["url"]


@asynccontextmanager
async def _real_server() -> AsyncIterator[Subject]:
    """Run a real API server, on which nothing but what stands in for a tool moves Deployments."""
    command = (sys.executable, "-m", "hack.kube.cluster", "--until-stdin-closes", "--no-rollouts")
    async with _process(command) as process:
        yield Subject(process, {"kubeconfig": (await _read(process)).decode().strip()})


@asynccontextmanager
async def _module(name: str, *arguments: str) -> AsyncIterator[Subject]:
    async with _process((sys.executable, "-m", name, *arguments)) as process:
        yield Subject(process, await _line(process))


@asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**20
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _line(process: asyncio.subprocess.Process) -> Any:
    return orjson.loads(await _read(process))


async def _read(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise RuntimeError("the process under test has no standard output")
    async with asyncio.timeout(DEADLINE):
        return await process.stdout.readline()


def _logged(event: Mapping[str, Any]) -> Request:
    """Read a line of the log of a real API server; the programs are told apart by what they call themselves."""
    about = event.get("objectRef") or {}
    resource = ".".join(filter(None, (about.get("resource", ""), about.get("apiGroup", ""))))
    return Request(event.get("userAgent", ""), event["verb"], _joined(resource, about.get("subresource", "")))


def _joined(resource: str, subresource: str) -> str:
    return f"{resource}/{subresource}" if subresource else resource
