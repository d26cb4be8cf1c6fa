"""Measure the time in which the simulator applies a repository of 600 Deployments, and its CPU time when idle.

    python -m hack.bench.simulator

It prints for each installed renderer the seconds until all Deployments exist, the seconds until a commit that changes
one image is applied, and the number of renderings; then the CPU time of an idle plane with a repository for each of 32
Pipelines. The process under test is `kardinal local up --simulate`, with rollouts that take no time.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import orjson

from hack.bench.subjects import Subject
from kardinal.clock import SystemClock
from kardinal.git import GitRunner, Repository, create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.objects import DEPLOYMENT, JsonObject
from kardinal.promotion.kinds import PIPELINE
from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_local import sample
from kardinal_local.serving import PlaneOptions
from kardinal_local.simulator import BuiltInRenderer, DirectoryRenderer, find_renderer
from kardinal_local.simulator.gitops import COMMIT_ANNOTATION
from kardinal_local.simulator.inputs import Inputs
from kardinal_local.simulator.kustomization import Rendered
from kardinal_local.simulator.renderer import Rendering
from kardinal_local.stack import run_stack

PIPELINES = 30
ENVIRONMENTS = 20
"""The number of environments of each Pipeline, which have one Deployment each."""
IDLE_PIPELINES = 32
IDLE_SECONDS = 30.0
SETTLE_SECONDS = 10.0
DEADLINE = 600.0
BUILT_IN = "built-in"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one renderer."""

    all_there: float
    renders: int
    one_commit: float
    renders_of_commit: int


class Counting:
    """Wraps a renderer, and counts its renderings."""

    def __init__(self, renderer: DirectoryRenderer) -> None:
        self._renderer = renderer
        self.count = 0

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        async with self._renderer.at(repository, commit) as rendering:
            yield _Counted(self, rendering)


class _Counted:
    def __init__(self, counter: Counting, rendering: Rendering) -> None:
        self._counter = counter
        self._rendering = rendering

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        self._counter.count += 1
        return await self._rendering.render(path, inputs)


class Plane:
    """The process under test."""

    def __init__(self, subject: Subject, client: Client) -> None:
        self.subject = subject
        self.client = client

    async def renders(self) -> int:
        if self.subject.process.stdin is None:
            raise RuntimeError("the process under test has no standard input")
        self.subject.process.stdin.write(b"\n")
        return int(await _line(self.subject.process))

    async def deployments(self, *, until: Callable[[dict[str, JsonObject]], bool]) -> None:
        """Wait until the Deployments, by namespace/name, satisfy `until`."""
        found: dict[str, JsonObject] = {}
        async with asyncio.timeout(DEADLINE), self.client.watch(DEPLOYMENT, initial_events=True) as events:
            async for event in events:
                metadata = event.object["metadata"]
                if "name" in metadata:
                    found[f"{metadata['namespace']}/{metadata['name']}"] = event.object
                if until(found):
                    return


def _files(pipeline: int, environments: int) -> dict[str, bytes]:
    base = sample.files()
    files = {
        f"app-{pipeline}/{name}": content.replace(f"name: {sample.APP}".encode(), f"name: app-{pipeline}".encode())
        for name, content in base.items()
        if not name.startswith("environments/")
    }
    overlay = base["environments/dev/kustomization.yaml"]
    return files | {
        f"app-{pipeline}/environments/env-{number}/kustomization.yaml": overlay.replace(
            b"namespace: dev", f"namespace: env-{number}".encode()
        )
        for number in range(environments)
    }


def _pipeline(number: int, environments: int, url: str) -> JsonObject:
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": f"app-{number}", "namespace": "default"},
        "spec": {
            "git": {"url": url, "provider": "git"},
            "environments": [
                {"name": f"env-{env}", "path": f"app-{number}/environments/env-{env}"} for env in range(environments)
            ],
        },
    }


async def _create(path: Path, files: Mapping[str, bytes]) -> None:
    await asyncio.to_thread(create_bare_repository, path, files, clock=SystemClock())


def _move_image(repository: Path) -> str:
    """Commit a new image tag for the first environment of the first Pipeline, and return the commit."""
    path = "app-0/environments/env-0/kustomization.yaml"
    text = _git(repository, "show", f"main:{path}").replace(sample.OLD_TAG, "9.9.9")
    script = (
        f"commit refs/heads/main\ncommitter bench <bench@example.com> now\ndata 4\nmove\nfrom refs/heads/main^0\n"
        f"M 100644 inline {path}\ndata {len(text.encode())}\n{text}\n"
    )
    _git(repository, "fast-import", "--quiet", "--date-format=now", text=script)
    return _git(repository, "rev-parse", "main").strip()


def _git(repository: Path, *arguments: str, text: str | None = None) -> str:
    return subprocess.run(
        ["git", "-C", str(repository), *arguments], input=text, capture_output=True, text=True, check=True
    ).stdout


async def _measure(renderer: str) -> Figures:
    async with _plane(renderer) as (plane, directory):
        repository = directory / "gitops.git"
        files: dict[str, bytes] = {}
        for number in range(PIPELINES):
            files |= _files(number, ENVIRONMENTS)
        await _create(repository, files)
        began = time.perf_counter()
        for number in range(PIPELINES):
            await plane.client.create(PIPELINE, _pipeline(number, ENVIRONMENTS, repository.as_uri()))
        await plane.deployments(until=lambda found: len(found) == PIPELINES * ENVIRONMENTS)
        all_there = time.perf_counter() - began
        await asyncio.sleep(SETTLE_SECONDS)
        renders = await plane.renders()
        began = time.perf_counter()
        commit = await asyncio.to_thread(_move_image, repository)
        await plane.deployments(until=lambda found: _carries(found.get("env-0/app-0"), commit))
        one_commit = time.perf_counter() - began
        await asyncio.sleep(SETTLE_SECONDS)
        return Figures(all_there, renders, one_commit, await plane.renders() - renders)


def _carries(deployment: JsonObject | None, commit: str) -> bool:
    return bool(deployment and deployment["metadata"]["annotations"].get(COMMIT_ANNOTATION) == commit)


async def _measure_idle() -> float:
    """Return the fraction of one core that an idle plane takes, with a repository for each Pipeline."""
    async with _plane(BUILT_IN) as (plane, directory):
        for number in range(IDLE_PIPELINES):
            repository = directory / f"app-{number}.git"
            await _create(repository, _files(number, 3))
            await plane.client.create(PIPELINE, _pipeline(number, 3, repository.as_uri()))
        await plane.deployments(until=lambda found: len(found) == IDLE_PIPELINES * 3)
        await asyncio.sleep(SETTLE_SECONDS)
        before = plane.subject.cpu()
        await asyncio.sleep(IDLE_SECONDS)
        return (plane.subject.cpu() - before) / IDLE_SECONDS


@asynccontextmanager
async def _plane(renderer: str) -> AsyncIterator[tuple[Plane, Path]]:
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as name:
        directory = Path(name)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "hack.bench.simulator", str(directory / "plane"), renderer),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            kubeconfig = Path(await _line(process))
            async with Client(await load_connection(kubeconfig), user_agent="kardinal-bench") as client:
                yield Plane(Subject(process, {"kubeconfig": str(kubeconfig)}), client), directory
        finally:
            process.terminate()
            await process.wait()


async def _line(process: asyncio.subprocess.Process) -> str:
    if process.stdout is None:
        raise RuntimeError("the process under test has no standard output")
    async with asyncio.timeout(DEADLINE):
        return str(orjson.loads(await process.stdout.readline()))


async def _serve(directory: Path, name: str) -> None:
    """Run as the process under test.

    It prints the path of its kubeconfig, and then the number of renderings for every line on standard input.
    """
    runner = GitRunner(workers=2)
    found = BuiltInRenderer() if name == BUILT_IN else await find_renderer(runner, directory / "exports")
    renderer = Counting(found)
    options = PlaneOptions(port=0)
    async with run_stack(directory, options=options, simulate=True, delay=timedelta(0), renderer=renderer) as stack:
        _say(str(stack.plane.kubeconfig))
        await _answer(lambda: _say(renderer.count))
    runner.close()


async def _answer(answer: Callable[[], None]) -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():
        answer()


def _say(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


async def _report() -> None:
    machine = f"{platform.machine()}, Python {platform.python_version()}"
    print(f"the simulator on {machine}: {PIPELINES} Pipelines of {ENVIRONMENTS} environments\n")
    installed = next((name for name in ("kustomize", "kubectl") if shutil.which(name)), None)
    for renderer in filter(None, (BUILT_IN, installed)):
        figures = await _measure(renderer)
        print(f"{renderer}")
        print(f"  until all Deployments are there   {figures.all_there:8.2f} s, {figures.renders} renders")
        print(f"  one commit that moves one image   {figures.one_commit:8.2f} s, {figures.renders_of_commit} renders")
    idle = await _measure_idle()
    print(f"idle, {IDLE_PIPELINES} Pipelines                 {idle * 100:8.2f} % of a core (goal <= 1 %)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        configure(level="error")
        run(_serve(Path(sys.argv[1]), sys.argv[2]))
    else:
        asyncio.run(_report())
