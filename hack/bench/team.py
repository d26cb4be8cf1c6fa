"""A team that promotes: it creates a repository, Pipelines and Bundles, and records the times of their progress."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal.kube import Client
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal_local import sample

__all__ = ["BRANCH", "ENVIRONMENTS", "NAMESPACE", "Moments", "Site", "Team"]

BRANCH = "main"
ENVIRONMENTS = ("dev", "staging", "prod")
NAMESPACE = "default"
DEADLINE = 600
CLIENTS = 16
"""The number of Pipelines that are created concurrently."""


@dataclass(frozen=True, slots=True)
class Site:
    """A repository on disk, and the URL by which its Pipelines reach it."""

    name: str
    """The prefix of the names of its applications."""
    directory: Path
    url: str

    def create(self, applications: int) -> None:
        """Create the repository, with a directory for each of this number of applications."""
        files: dict[str, bytes] = {}
        for application in self.applications(applications):
            for name, content in sample.files().items():
                renamed = content.replace(f"name: {sample.APP}".encode(), f"name: {application}".encode())
                files[f"{application}/{name}"] = renamed
        create_bare_repository(self.directory, files, branch=BRANCH, message="applications", clock=SystemClock())

    def applications(self, count: int) -> list[str]:
        return [f"{self.name}-{index}" for index in range(count)]

    def paths(self, applications: int) -> list[str]:
        """Return the directories of the environments of this number of applications."""
        return [f"{each}/environments/{name}" for each in self.applications(applications) for name in ENVIRONMENTS]


@dataclass(slots=True)
class Moments:
    """The times in seconds at which promotions were seen Verified and with a commit, by (Bundle, environment).

    Promotions that had a commit when they were first seen are not recorded.
    """

    steps: dict[tuple[str, str], bool] = field(default_factory=dict)
    """Whether the PromotionStep was first seen without a commit, so that its times are known."""
    verified: dict[tuple[str, str], float] = field(default_factory=dict)
    committed: dict[tuple[str, str], float] = field(default_factory=dict)

    def lags(self) -> list[float]:
        """Return the seconds from the verification of an environment to the commit in the next environment."""
        upstreams = dict(zip(ENVIRONMENTS[1:], ENVIRONMENTS, strict=False))
        return [
            moment - self.verified[bundle, upstreams[environment]]
            for (bundle, environment), moment in self.committed.items()
            if environment in upstreams and (bundle, upstreams[environment]) in self.verified
        ]

    def note(self, step: JsonObject) -> None:
        key = step["spec"]["bundleRef"], step["spec"]["environment"]
        status = step.get("status", {})
        if not self.steps.setdefault(key, not status.get("commit")):
            return
        if status.get("commit"):
            self.committed.setdefault(key, time.perf_counter())
        if status.get("state") == "Verified":
            self.verified.setdefault(key, time.perf_counter())


class Team:
    """Creates the Pipelines and Bundles of a site, and measures the time until the Bundles are Verified."""

    def __init__(self, client: Client, site: Site) -> None:
        self._client = client
        self._site = site
        self._pipelines = 0
        self._walked = 0

    async def grow(self, pipelines: int) -> list[str]:
        """Create Pipelines until there are `pipelines` of them, and return their names."""
        names = self._site.applications(pipelines)
        new = iter(names[self._pipelines :])

        async def create() -> None:
            for name in new:
                await self._client.create(PIPELINE, _pipeline(name, self._site.url))

        await asyncio.gather(*(create() for _ in range(CLIENTS)))
        self._pipelines = max(self._pipelines, pipelines)
        return names

    async def walk(self, pipelines: Sequence[str], *, target: str = ENVIRONMENTS[-1]) -> float:
        """Promote one Bundle for each Pipeline at once, and return the seconds until all are Verified.

        `target` is the last environment of the Bundles; defaults to the last one of the Pipelines. Raises
        `RuntimeError` if a Bundle fails.
        """
        waiting = {f"{pipeline}-{self._walked + 1}" for pipeline in pipelines}
        watch = self._client.watch(BUNDLE, NAMESPACE, initial_events=True, timeout_seconds=DEADLINE)
        async with asyncio.timeout(DEADLINE), watch as events:
            began = time.perf_counter()
            await self.start(pipelines, target=target)
            async for event in events:
                phase = event.object.get("status", {}).get("phase")
                name = event.object["metadata"].get("name")
                if phase in ("Failed", "SkipDenied") and name in waiting:
                    raise RuntimeError(f"Bundle {name} is {phase}: {event.object['status']}")
                if phase == "Verified":
                    waiting.discard(name)
                if not waiting:
                    return time.perf_counter() - began
        raise RuntimeError(f"the watch ended before {_few(waiting)} were Verified")

    async def start(self, pipelines: Sequence[str], *, target: str = ENVIRONMENTS[-1]) -> None:
        """Create one Bundle for each Pipeline; `target` as above."""
        self._walked += 1
        await asyncio.gather(*(self._client.create(BUNDLE, self._bundle(each, target)) for each in pipelines))

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[Moments]:
        """Record the times of all promotions during the block."""
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

    def _bundle(self, pipeline: str, target: str) -> JsonObject:
        return {
            "apiVersion": BUNDLE.api_version,
            "kind": BUNDLE.kind,
            "metadata": {
                "name": f"{pipeline}-{self._walked}",
                "namespace": NAMESPACE,
                "labels": {"kardinal.io/pipeline": pipeline},
            },
            "spec": {
                "artifacts": {"images": [{"reference": f"{sample.IMAGE}:1.0.{self._walked}"}]},
                "intent": {"target": target},
            },
        }


def _pipeline(name: str, url: str) -> JsonObject:
    environments = [
        {
            "name": environment,
            "path": f"{name}/environments/{environment}",
            "health": {"type": "resource", "resource": {"name": name, "namespace": environment}},
        }
        for environment in ENVIRONMENTS
    ]
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"git": {"url": url, "provider": "git"}, "environments": environments, "historyLimit": 100},
    }


def _few(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)[:3])
