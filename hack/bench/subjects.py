"""The processes under test, and what the operating system and their API server count of them."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

__all__ = ["Cluster", "Subject", "Writes", "difference", "run_apart", "run_cluster", "run_subject"]

DEADLINE = 120.0
_WRITES = {"create", "update", "patch", "delete", "deletecollection"}

Writes = Counter[tuple[str, str]]
"""How often a user wrote a resource, as `(user, resource)`."""


@dataclass(slots=True)
class Subject:
    """A process under test."""

    process: asyncio.subprocess.Process
    kubeconfig: Path

    async def counts(self) -> Writes:
        """Return the API writes so far, by user and by resource; none from a process without an API server."""
        if self.process.stdin is None:
            raise RuntimeError("the process under test has no standard input")
        self.process.stdin.write(b"\n")
        counted: Writes = Counter()
        for user, verb, resource, subresource, count in await _line(self.process):
            if verb in _WRITES:
                counted[user, f"{resource}/{subresource}" if subresource else resource] += count
        return counted

    def cpu(self) -> float:
        """Seconds of CPU used so far, children included."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@dataclass(frozen=True, slots=True)
class Cluster:
    """An API server, the programs and the simulator, each a process of its own."""

    plane: Subject | None
    """The local plane; None on a real API server, whose writes are not counted."""
    programs: Subject
    """Controller and agent."""


@asynccontextmanager
async def run_subject(role: str, directory: Path, kubeconfigs: Path | None = None) -> AsyncIterator[Subject]:
    """Run a role of `hack/bench/serve.py`."""
    command = (
        sys.executable,
        "-m",
        "hack.bench.serve",
        role,
        str(directory),
        *([str(kubeconfigs)] * bool(kubeconfigs)),
    )
    async with _process(command) as process:
        yield Subject(process, Path((await _line(process))["kubeconfig"]))


@asynccontextmanager
async def run_apart(directory: Path) -> AsyncIterator[Cluster]:
    """Run a local plane, the programs and the simulator, each in a process of its own."""
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(run_subject("plane", directory / "plane"))
        yield await _beside(stack, directory, plane, plane.kubeconfig.parent)


@asynccontextmanager
async def run_cluster(directory: Path) -> AsyncIterator[Cluster]:
    """Run a real API server, the programs and the simulator."""
    command = (sys.executable, "-m", "hack.kube.cluster", "--until-stdin-closes")
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(_process(command))
        yield await _beside(stack, directory, None, Path((await _read(process)).decode().strip()))


async def _beside(stack: AsyncExitStack, directory: Path, plane: Subject | None, kubeconfigs: Path) -> Cluster:
    programs = await stack.enter_async_context(run_subject("programs", directory / "programs", kubeconfigs))
    await stack.enter_async_context(run_subject("simulator", directory / "simulator", kubeconfigs))
    return Cluster(plane, programs)


def difference(after: Writes, before: Writes) -> Writes:
    """Return what was written between two counts."""
    return Counter({key: count - before[key] for key, count in after.items() if count > before[key]})


@asynccontextmanager
async def _process(command: Sequence[str]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**20
    )
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


async def _line(process: asyncio.subprocess.Process) -> Any:
    return orjson.loads(await _read(process))


async def _read(process: asyncio.subprocess.Process) -> bytes:
    if process.stdout is None:
        raise RuntimeError("the process under test has no standard output")
    async with asyncio.timeout(DEADLINE):
        return await process.stdout.readline()
