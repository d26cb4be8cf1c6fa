"""Run the processes under test, and read their CPU time, memory and requests."""

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
    "run_module",
    "run_subject",
    "run_tool",
]

DEADLINE = 120.0
PROGRAMS = "kardinal-controller"
"""The API user of the process that runs controller and agent."""


class Request(NamedTuple):
    """A group of requests that are counted together: `Request("kardinal-controller", "patch", "bundles")`.

    `user` is the name of a ServiceAccount, or of a program without a ServiceAccount.
    """

    user: str
    verb: str
    resource: str

    @property
    def writes(self) -> bool:
        return self.verb in ("create", "update", "patch", "delete", "deletecollection")


Requests = Counter[Request]


@dataclass(slots=True)
class Subject:
    """A running process under test."""

    process: asyncio.subprocess.Process
    answer: Mapping[str, Any]
    """The first line on its standard output, which is JSON: `{"kubeconfig": "/tmp/…/kubeconfig"}` for a plane."""

    @property
    def kubeconfig(self) -> Path:
        return Path(self.answer["kubeconfig"])

    async def ask(self) -> Any:
        """Return the request counts of a process with an API server, as decoded JSON."""
        if self.process.stdin is None:
            raise RuntimeError("the process under test has no standard input")
        self.process.stdin.write(b"\n")
        return await _line(self.process)

    def cpu(self, *, children: bool = True) -> float:
        """Return the CPU time so far in seconds; with `children`, the default, also of children that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11 : 15 if children else 13]) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the resident memory in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


class Cluster:
    """An API server and the programs as separate processes; the simulated GitOps tool is another process."""

    def __init__(self, server: Subject, programs: Subject, *, log: Path | None = None) -> None:
        self.server = server
        """The process of the API server; a real API server is its child."""
        self.programs = programs
        """The process of controller and agent."""
        self._log = log

    @property
    def kubeconfig(self) -> Path:
        return self.programs.kubeconfig

    async def requests(self) -> Requests:
        """Return the number of requests to the API server so far, by group."""
        counted: Requests = Counter()
        if self._log is not None:
            for line in (await asyncio.to_thread(self._log.read_bytes)).splitlines():
                counted[_logged(orjson.loads(line))] += 1
            return counted
        for user, verb, resource, subresource, count in await self.server.ask():
            counted[Request(user.rpartition(":")[2], verb, _joined(resource, subresource))] += count
        return counted


def difference(after: Requests, before: Requests) -> Requests:
    """Return the requests between two counts."""
    return Counter({key: count - before[key] for key, count in after.items() if count > before[key]})


@asynccontextmanager
async def run_subject(role: str, directory: Path, kubeconfigs: Path | None = None) -> AsyncIterator[Subject]:
    """Run `hack/bench/serve.py` in a role, such as `programs`."""
    arguments = (str(directory), *([str(kubeconfigs)] * bool(kubeconfigs)))
    async with run_module("hack.bench.serve", role, *arguments) as subject:
        yield subject


@asynccontextmanager
async def run_apart(directory: Path) -> AsyncIterator[Cluster]:
    """Run a local plane, the programs and the simulator as separate processes."""
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
        await stack.enter_async_context(run_tool(tool, repositories))
        yield Cluster(server, programs, log=log)


@asynccontextmanager
async def run_tool(kubeconfig: Path, repositories: Sequence[Path]) -> AsyncIterator[None]:
    """Run `hack/bench/gitops.py` on repositories."""
    async with run_module("hack.bench.gitops", str(kubeconfig), *map(str, repositories)):
        yield


@asynccontextmanager
async def run_git_server(directory: Path) -> AsyncIterator[tuple[Subject, str]]:
    """Serve the repositories of a directory over HTTP, and yield the process and its URL."""
    async with run_module("hack.bench.git_server", str(directory)) as subject:
        yield subject, subject.answer["url"]


@asynccontextmanager
async def _real_server() -> AsyncIterator[Subject]:
    """Run a real API server. Only the simulated GitOps tool changes Deployments on it."""
    command = (sys.executable, "-m", "hack.kube.cluster", "--until-stdin-closes", "--no-rollouts")
    async with _process(command) as process:
        yield Subject(process, {"kubeconfig": (await _read(process)).decode().strip()})


@asynccontextmanager
async def run_module(name: str, *arguments: str) -> AsyncIterator[Subject]:
    """Run a module as a process, and yield it once it has printed its first line, which is JSON."""
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
    """Return the group of a request in the audit log of a real API server; programs are known by their user agent."""
    about = event.get("objectRef") or {}
    resource = ".".join(filter(None, (about.get("resource", ""), about.get("apiGroup", ""))))
    return Request(event.get("userAgent", ""), event["verb"], _joined(resource, about.get("subresource", "")))


def _joined(resource: str, subresource: str) -> str:
    return f"{resource}/{subresource}" if subresource else resource
