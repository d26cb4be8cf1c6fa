"""Measure what one promotion costs: time, API writes, CPU and memory, from one run on this machine.

    make bench

The process under test runs plane, controller, agent and simulator together (`hack/bench/serve.py`); this process posts
Bundles and watches, as a person would, and reads the other's CPU and memory from the operating system.
"""

from __future__ import annotations

import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kardinal.api import BUNDLE, PIPELINE
from kardinal.git import create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.runtime.clock import SystemClock
from kardinal_local import sample

ENVIRONMENTS = ("dev", "staging", "prod")
WALKS = 12
"""Bundles sent one after the other, for the latency of a walk and the pace of one pipeline."""
PIPELINES = 20
MEMORY_PROMOTIONS = 100
IDLE_SECONDS = 60.0
DEADLINE = 120.0
SIMULATOR = "system:serviceaccount:kardinal-system:kardinal-simulator"
"""Whose writes a GitOps tool and a kubelet would make: they are shown, and not counted as kardinal's."""
WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(slots=True)
class Subject:
    """The process under test."""

    process: asyncio.subprocess.Process
    kubeconfig: Path

    async def counts(self) -> Counter[tuple[str, str]]:
        """Return the API writes so far, by user and by resource."""
        if self.process.stdin is None:
            raise RuntimeError("the process under test has no standard input")
        self.process.stdin.write(b"\n")
        rows = await _line(self.process)
        counted: Counter[tuple[str, str]] = Counter()
        for user, verb, resource, subresource, count in rows:
            if verb in WRITES:
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


class Walker:
    """Sends Bundles and says when they are Verified."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._number = 0

    async def walk(self, pipelines: Sequence[str]) -> float:
        """One Bundle through each pipeline at once; the seconds until the last is Verified."""
        self._number += 1
        waiting = {f"{pipeline}-{self._number}" for pipeline in pipelines}
        async with asyncio.timeout(DEADLINE), self._client.watch(BUNDLE, "default", initial_events=True) as events:
            began = time.perf_counter()
            await asyncio.gather(*(self._create(pipeline) for pipeline in pipelines))
            async for event in events:
                phase = event.object.get("status", {}).get("phase")
                name = event.object["metadata"].get("name")
                if phase in ("Failed", "SkipDenied") and name in waiting:
                    raise RuntimeError(f"Bundle {name} is {phase}: {event.object['status']}")
                if phase == "Verified":
                    waiting.discard(name)
                if not waiting:
                    return time.perf_counter() - began
        raise RuntimeError("the watch ended early")

    async def _create(self, pipeline: str) -> None:
        body = {
            "apiVersion": BUNDLE.api_version,
            "kind": BUNDLE.kind,
            "metadata": {
                "name": f"{pipeline}-{self._number}",
                "namespace": "default",
                "labels": {"kardinal.io/pipeline": pipeline},
            },
            "spec": {"artifacts": {"images": [{"reference": f"{sample.IMAGE}:1.0.{self._number}"}]}},
        }
        await self._client.create(BUNDLE, body)


def _repository(path: Path) -> None:
    files: dict[str, bytes] = {}
    for index in range(PIPELINES):
        for name, content in sample.files().items():
            renamed = content.replace(f"name: {sample.APP}".encode(), f"name: app-{index}".encode())
            files[f"app-{index}/{name}"] = renamed
    create_bare_repository(path, files, message="twenty applications", clock=SystemClock())


async def _create_pipelines(client: Client, repository: Path) -> None:
    for index in range(PIPELINES):
        environments = [{"name": name, "path": f"app-{index}/environments/{name}"} for name in ENVIRONMENTS]
        body = {
            "apiVersion": PIPELINE.api_version,
            "kind": PIPELINE.kind,
            "metadata": {"name": f"app-{index}", "namespace": "default"},
            "spec": {
                "git": {"url": repository.as_uri(), "provider": "git"},
                "environments": environments,
                "historyLimit": 100,
            },
        }
        await client.create(PIPELINE, body)


@asynccontextmanager
async def run_subject(directory: Path, *, plane: Path | None = None) -> AsyncIterator[Subject]:
    """Run the process under test; `plane` is the directory of a plane that runs already."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "hack.bench.serve",
        str(directory),
        *([str(plane)] if plane else []),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Subject(process, Path((await _line(process))["kubeconfig"]))
    finally:
        process.terminate()
        await process.wait()


async def _line(process: asyncio.subprocess.Process) -> Any:
    if process.stdout is None:
        raise RuntimeError("the process under test has no standard output")
    async with asyncio.timeout(DEADLINE):
        return orjson.loads(await process.stdout.readline())


def _difference(after: Counter[tuple[str, str]], before: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    return Counter({key: count - before[key] for key, count in after.items() if count > before[key]})


def _print_writes(writes: Counter[tuple[str, str]], promotions: int) -> None:
    simulated = sum(count for (user, _), count in writes.items() if user == SIMULATOR)
    own = (writes.total() - simulated) / promotions
    print(f"API writes per environment promotion    {own:8.1f}   (goal <= 10)")
    print(f"    and the simulator's own             {simulated / promotions:8.1f}")
    for (user, resource), count in sorted(writes.items(), key=lambda item: -item[1]):
        print(f"    {user:<28} {resource:<40} {count / promotions:6.2f}")


async def _measure(directory: Path) -> None:
    repository = directory / "gitops.git"
    await asyncio.to_thread(_repository, repository)
    async with run_subject(directory / "plane") as subject:
        connection = await load_connection(subject.kubeconfig)
        async with Client(connection, user_agent="kardinal-bench") as client:
            await asyncio.sleep(2)
            idle = subject.memory()
            await _create_pipelines(client, repository)
            walker = Walker(client)
            await walker.walk(["app-0"])
            before, cpu = await subject.counts(), subject.cpu()
            began = time.perf_counter()
            walks = [await walker.walk(["app-0"]) for _ in range(WALKS)]
            pace = WALKS * len(ENVIRONMENTS) / (time.perf_counter() - began) * 60
            promotions = WALKS * len(ENVIRONMENTS)
            spent = (subject.cpu() - cpu) / promotions
            await asyncio.sleep(2)
            writes = _difference(await subject.counts(), before)
            everyone = [f"app-{index}" for index in range(PIPELINES)]
            together = await walker.walk(everyone)
            done = promotions + (1 + PIPELINES) * len(ENVIRONMENTS)
            while done < MEMORY_PROMOTIONS:
                await walker.walk(["app-0"])
                done += len(ENVIRONMENTS)
            memory = subject.memory()
            await asyncio.sleep(5)
            quiet = await subject.counts()
            await asyncio.sleep(IDLE_SECONDS)
            idle_writes = _difference(await subject.counts(), quiet).total()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"first light on {machine}, {SystemClock().now():%Y-%m-%d}\n")
    print(
        f"Bundle to Verified, three environments  {statistics.median(walks):8.2f} s (median of {WALKS}, goal <= 1.5 s)"
    )
    print(f"environment promotions a minute, 1      {pace:8.0f}")
    print(f"environment promotions a minute, {PIPELINES}     {PIPELINES * len(ENVIRONMENTS) / together * 60:8.0f}")
    _print_writes(writes, promotions)
    print(f"CPU per environment promotion           {spent:8.3f} s")
    print(f"memory, idle                            {idle:8.0f} MB")
    print(f"memory, after {done} promotions           {memory:8.0f} MB (goal <= 200 MB)")
    print(f"API writes in an idle minute            {idle_writes:8d}   (goal 0)")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        asyncio.run(_measure(Path(directory)))


if __name__ == "__main__":
    main()
