"""Measure what promotions cost: time, API writes, CPU and memory, beside a script that does the same with `git`.

    python -m hack.bench.promotion [--api plane|real] [--most 200] [--many 1000]

API server, programs and simulator are processes of their own; this one posts Bundles and watches, as a person would,
and reads CPU and memory of the programs from the operating system. All Pipelines have three environments in one
repository, which is reached by its path: the simulator follows such a repository by its events, and another one only by
asking now and then. A run is one machine at one time: compare figures of one run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hack.bench.baseline import promotions_a_minute
from hack.bench.subjects import Cluster, Writes, difference, run_apart, run_cluster
from kardinal.api import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.git import create_bare_repository
from kardinal.kube import Client, load_connection
from kardinal.objects import JsonObject
from kardinal.runtime.clock import SystemClock
from kardinal_local import sample

ENVIRONMENTS = ("dev", "staging", "prod")
NAMESPACE = "default"
WALKS = 12
"""Bundles sent one after the other."""
FEW = 10
TOGETHER = 20
IDLE_SECONDS = 30.0
BASELINES = 30
"""Promotions of the script."""
DEADLINE = 300.0
SIMULATOR = "system:serviceaccount:kardinal-system:kardinal-simulator"
"""Whose writes a GitOps tool and a kubelet would make: they are shown, and not counted as kardinal's."""


@dataclass(slots=True)
class Moments:
    """When an environment was seen Verified, and when the commit of the next was seen, in seconds."""

    verified: dict[tuple[str, str], float] = field(default_factory=dict)
    committed: dict[tuple[str, str], float] = field(default_factory=dict)

    def lags(self) -> list[float]:
        """Return the seconds from an environment to the commit of the next."""
        upstreams = dict(zip(ENVIRONMENTS[1:], ENVIRONMENTS, strict=False))
        return [
            moment - self.verified[bundle, upstreams[environment]]
            for (bundle, environment), moment in self.committed.items()
            if environment in upstreams and (bundle, upstreams[environment]) in self.verified
        ]

    def note(self, step: JsonObject) -> None:
        key = step["spec"]["bundleRef"], step["spec"]["environment"]
        status = step.get("status", {})
        if status.get("commit"):
            self.committed.setdefault(key, time.perf_counter())
        if status.get("state") == "Verified":
            self.verified.setdefault(key, time.perf_counter())


class Team:
    """Creates Pipelines and Bundles, and says when these are Verified."""

    def __init__(self, client: Client, url: str) -> None:
        self._client = client
        self._url = url
        self._pipelines = 0
        self._walked = 0

    async def grow(self, pipelines: int) -> list[str]:
        """Create Pipelines until there are so many; returns their names."""
        for index in range(self._pipelines, pipelines):
            await self._client.create(PIPELINE, _pipeline(index, self._url))
        self._pipelines = max(self._pipelines, pipelines)
        return [f"app-{index}" for index in range(pipelines)]

    async def walk(self, pipelines: Sequence[str]) -> float:
        """Send one Bundle through each Pipeline at once; the seconds until the last is Verified."""
        self._walked += 1
        waiting = {f"{pipeline}-{self._walked}" for pipeline in pipelines}
        async with asyncio.timeout(DEADLINE), self._client.watch(BUNDLE, NAMESPACE, initial_events=True) as events:
            began = time.perf_counter()
            await asyncio.gather(*(self._client.create(BUNDLE, self._bundle(pipeline)) for pipeline in pipelines))
            async for event in events:
                phase, name = event.object.get("status", {}).get("phase"), event.object["metadata"].get("name")
                if phase in ("Failed", "SkipDenied") and name in waiting:
                    raise RuntimeError(f"Bundle {name} is {phase}: {event.object['status']}")
                if phase == "Verified":
                    waiting.discard(name)
                if not waiting:
                    return time.perf_counter() - began
        raise RuntimeError("the watch ended early")

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Moments]:
        """Note the moments of all steps while the block runs."""
        moments = Moments()

        async def follow() -> None:
            async with self._client.watch(PROMOTION_STEP, NAMESPACE, initial_events=True) as events:
                async for event in events:
                    if "spec" in event.object:
                        moments.note(event.object)

        following = asyncio.create_task(follow())
        try:
            yield moments
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    def _bundle(self, pipeline: str) -> JsonObject:
        return {
            "apiVersion": BUNDLE.api_version,
            "kind": BUNDLE.kind,
            "metadata": {
                "name": f"{pipeline}-{self._walked}",
                "namespace": NAMESPACE,
                "labels": {"kardinal.io/pipeline": pipeline},
            },
            "spec": {"artifacts": {"images": [{"reference": f"{sample.IMAGE}:1.0.{self._walked}"}]}},
        }


def _pipeline(index: int, url: str) -> JsonObject:
    environments = [
        {
            "name": name,
            "path": f"app-{index}/environments/{name}",
            "health": {"type": "resource", "resource": {"name": f"app-{index}", "namespace": name}},
        }
        for name in ENVIRONMENTS
    ]
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": f"app-{index}", "namespace": NAMESPACE},
        "spec": {"git": {"url": url, "provider": "git"}, "environments": environments, "historyLimit": 100},
    }


def _make_repository(path: Path, applications: int) -> None:
    files: dict[str, bytes] = {}
    for index in range(applications):
        for name, content in sample.files().items():
            renamed = content.replace(f"name: {sample.APP}".encode(), f"name: app-{index}".encode())
            files[f"app-{index}/{name}"] = renamed
    create_bare_repository(path, files, message="applications", clock=SystemClock())


def _print_writes(writes: Writes, promotions: int) -> None:
    simulated = sum(count for (user, _), count in writes.items() if user == SIMULATOR)
    _print("API writes of an environment promotion", f"{(writes.total() - simulated) / promotions:.1f}", "<= 6")
    for (user, resource), count in sorted(writes.items(), key=lambda item: -item[1]):
        print(f"    {user.rpartition(':')[2]:<28} {resource:<32} {count / promotions:6.2f}")


def _print(what: str, figure: str, goal: str = "") -> None:
    print(f"{what:<56} {figure:>10}" + (f"   (goal {goal})" if goal else ""), flush=True)


async def _one_after_the_other(cluster: Cluster, team: Team) -> None:
    """Print what the walks of one Pipeline cost while nothing else happens."""
    (name,) = await team.grow(1)
    await team.walk([name])
    before = await cluster.plane.counts() if cluster.plane is not None else None
    spent = cluster.programs.cpu()
    async with team.watched() as moments:
        began = time.perf_counter()
        walks = [await team.walk([name]) for _ in range(WALKS)]
        pace = WALKS * len(ENVIRONMENTS) / (time.perf_counter() - began) * 60
        await asyncio.sleep(2)
    promotions = WALKS * len(ENVIRONMENTS)
    _print(
        f"Bundle to {len(ENVIRONMENTS)} x Verified, median of {WALKS}", f"{statistics.median(walks):.2f} s", "<= 0.5 s"
    )
    lags = moments.lags()
    _print("upstream Verified to commit downstream, median", f"{statistics.median(lags) * 1000:.0f} ms", "<= 100 ms")
    _print(
        "CPU of controller and agent for a promotion",
        f"{(cluster.programs.cpu() - spent) / promotions:.3f} s",
        "<= 0.04 s",
    )
    _print("promotions a minute, 1 Pipeline", f"{pace:.0f}", "1500")
    if cluster.plane is not None and before is not None:
        _print_writes(difference(await cluster.plane.counts(), before), promotions)


async def _cpu_of_a_walk(cluster: Cluster, team: Team, pipelines: int) -> float:
    """Return the CPU of one Pipeline's promotion beside so many Pipelines, in seconds."""
    (name, *_) = await team.grow(pipelines)
    await asyncio.sleep(2)
    await team.walk([name])
    before = cluster.programs.cpu()
    for _ in range(WALKS):
        await team.walk([name])
    return (cluster.programs.cpu() - before) / (WALKS * len(ENVIRONMENTS))


async def _measure(directory: Path, *, api: str, most: int, many: int) -> None:
    bare = directory / "gitops.git"
    await asyncio.to_thread(_make_repository, bare, max(most, many, TOGETHER))
    print(f"promotions on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, ", end="")
    print(f"{SystemClock().now():%Y-%m-%d}: API server {api}\n")
    run = run_apart if api == "plane" else run_cluster
    url = bare.as_uri()
    async with (
        run(directory) as cluster,
        Client(await load_connection(cluster.programs.kubeconfig), user_agent="kardinal-bench") as client,
    ):
        team = Team(client, url)
        await asyncio.sleep(2)
        _print("memory of the programs, idle", f"{cluster.programs.memory():.0f} MB")
        await _one_after_the_other(cluster, team)
        _print(f"CPU of a promotion beside {FEW} Pipelines", f"{await _cpu_of_a_walk(cluster, team, FEW):.3f} s")
        for pipelines in (TOGETHER, most):
            names = await team.grow(pipelines)
            pace = pipelines * len(ENVIRONMENTS) / await team.walk(names) * 60
            _print(f"promotions a minute, {pipelines} Pipelines", f"{pace:.0f}", "1500")
        if many > most:
            beside = await _cpu_of_a_walk(cluster, team, many)
            _print(f"CPU of a promotion beside {many} Pipelines", f"{beside:.3f} s", "as beside 10")
            _print(f"memory of the programs, {many} Pipelines", f"{cluster.programs.memory():.0f} MB")
        if cluster.plane is not None:
            quiet = await cluster.plane.counts()
            await asyncio.sleep(IDLE_SECONDS)
            idle = difference(await cluster.plane.counts(), quiet).total()
            _print(f"API writes in {IDLE_SECONDS:.0f} idle seconds", str(idle), "0")
    paths = [f"app-{index}/environments/{name}" for index in range(BASELINES // 3) for name in ENVIRONMENTS]
    for title, kept in (("a new clone each", False), ("a kept clone", True)):
        done = await asyncio.to_thread(promotions_a_minute, url, paths, directory / title.replace(" ", "-"), kept=kept)
        _print(f"a script's promotions a minute, {title}", f"{done:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what promotions cost.")
    parser.add_argument("--api", choices=("plane", "real"), default="plane", help="the API server")
    parser.add_argument("--most", type=int, default=200, help="Pipelines that promote at once")
    parser.add_argument("--many", type=int, default=1000, help="Pipelines beside one that promotes; 0: not measured")
    with tempfile.TemporaryDirectory(prefix="kardinal-bench-") as directory:
        asyncio.run(_measure(Path(directory), **vars(parser.parse_args())))


if __name__ == "__main__":
    main()
