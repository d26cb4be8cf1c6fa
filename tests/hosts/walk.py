"""Bundles that walk one after the other through a Pipeline at a real Gitea, and the people around them.

An environment is pushed to, the next one is merged by kardinal, the last one is reviewed and merged by a person. The
walk is everything but the programs: CI, the cluster, the reviewer and the administrator of the host. It goes on as soon
as the API server says that a program has come to the point, however often it died on the way.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kardinal.kube import Client, PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal.tree.git_names import TRAILER_STEP
from tests.hosts.projects import git
from tests.resilience.lives.observed import Observed
from tests.resilience.lives.workloads import roll_out
from tests.support.gitea import GiteaProject
from tests.support.names import TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import IMAGE, Commit, GitRepository

__all__ = ["Landed", "Walk", "environments_of", "landed", "lift_locks", "locks"]

_HEALTH = {"timeout": "1h", "failureGrace": "1s"}

_SECONDS = 300.0
"""Real seconds in which a program does the next step: as long as the longest pause after failures."""

_LEFT = re.compile(r"has left \S+\.lock: remove it at the host, and HEAD\.lock and refs/heads/(\S+)\.lock of")


def environments_of(pipeline_name: str) -> tuple[str, str, str]:
    """Return the environments of a Pipeline of a walk: pushed to, merged by kardinal, merged by a person."""
    return f"{pipeline_name}-dev", f"{pipeline_name}-staging", f"{pipeline_name}-prod"


@dataclass(frozen=True)
class Landed:
    """The commits of one promotion, the state of its pull requests and the comments on them."""

    commits: tuple[Commit, ...]
    pulls: tuple[str, ...]
    comments: tuple[str, ...]


class Walk:
    """The Bundles of one Pipeline, beside others in one namespace and one repository."""

    def __init__(self, name: str, project: GiteaProject, *, client: Client, observed: Observed) -> None:
        self.name = name
        self.bundles: list[str] = []
        self._project = project
        self._client = client
        self._observed = observed

    async def walk(self, bundles: int) -> None:
        """Promote so many Bundles, each when the one before is everywhere."""
        pushed, merged, reviewed = environments_of(self.name)
        health = {
            each: {**_HEALTH, "resource": {"name": each, "namespace": TEAM}} for each in (pushed, merged, reviewed)
        }
        chain = [
            environment(pushed, health=health[pushed]),
            environment(merged, health=health[merged], pr=True),
            environment(reviewed, health=health[reviewed], approval="pr-review"),
        ]
        made = pipeline("", name=self.name, environments=chain, git=git(self._project))
        await self._client.create(PIPELINE, made)
        for number in range(1, bundles + 1):
            await self._promote(f"{self.name}-{number}", f"1.0.{number}")

    async def _promote(self, name: str, tag: str) -> None:
        pushed, merged, reviewed = environments_of(self.name)
        await self._client.create(BUNDLE, bundle(name, tag=tag, pipeline=self.name))
        self.bundles.append(name)
        for each in (pushed, merged):
            await self._deploy(name, each, tag)
        proposed = await self._reached(name, reviewed, "WaitingForMerge", lambda found: "pullRequest" in found)
        await self._review(proposed["pullRequest"]["number"])
        await self._tell(name, reviewed)
        await self._deploy(name, reviewed, tag)

        def verified() -> bool | None:
            found = (self._observed.get(BUNDLE, name) or {}).get("status") or {}
            return found.get("phase") == "Verified" or None

        await self._observed.until(verified, f"{name} to be Verified", seconds=_SECONDS)

    async def _review(self, number: int) -> None:
        """Merge as a person does, who tries again where the host is not ready or another push was faster."""
        path = f"{self._project.path}/pulls/{number}"
        async with asyncio.timeout(_SECONDS):
            while not (await asyncio.to_thread(self._project.api, "GET", path))["merged"]:
                await asyncio.to_thread(self._project.ask, "POST", f"{path}/merge", {"Do": "merge"}, by="alice")
                await asyncio.sleep(0.1)

    async def _tell(self, name: str, where: str) -> None:
        """Say what the webhook of the host says; the shared poll would find it minutes later."""
        body = {"metadata": {"annotations": {names.ANNOTATION_WOKEN: uuid.uuid4().hex}}}
        await self._client.patch(PROMOTION_STEP, names.step_name(name, where), TEAM, body, kind=PatchType.MERGE)

    async def _deploy(self, name: str, where: str, tag: str) -> None:
        await self._reached(name, where, "HealthChecking")
        await roll_out(self._client, where, namespace=TEAM, image=f"{IMAGE}:{tag}")
        await self._reached(name, where, "Verified")

    async def _reached(
        self, name: str, where: str, state: str, accepts: Callable[[JsonObject], bool] = lambda _: True
    ) -> JsonObject:
        """Return the status of a step in a state."""

        def seen() -> JsonObject:
            step = self._observed.get(PROMOTION_STEP, names.step_name(name, where)) or {}
            return step.get("status") or {}

        def look() -> JsonObject | None:
            status = seen()
            return status if status.get("state") == state and accepts(status) else None

        return await self._observed.until(look, f"{name} in {where} to be {state}", show=seen, seconds=_SECONDS)


def landed(project: GiteaProject, mirror: GitRepository) -> dict[str, Landed]:
    """Return every promotion by the name of its PromotionStep, as a mirror of the repository and the host have it."""
    found: dict[str, Landed] = {}
    for pull in _all(project, f"{project.path}/pulls?state=all"):
        name = "-".join(pull["head"]["label"].split("/")[-2:])
        comments = project.api("GET", f"{project.path}/issues/{pull['number']}/comments")
        before = found.get(name, Landed((), (), ()))
        state = "merged" if pull["merged"] else pull["state"]
        said = tuple(comment["body"] for comment in comments)
        found[name] = Landed((), (*before.pulls, state), (*before.comments, *said))
    for commit in mirror.commits():
        if (step := commit.trailers.get(TRAILER_STEP)) is not None:
            name = step.removeprefix(f"{TEAM}/")
            before = found.get(name, Landed((), (), ()))
            found[name] = Landed((*before.commits, commit), before.pulls, before.comments)
    return found


def _all(project: GiteaProject, path: str) -> Iterator[JsonObject]:
    page = 1
    while entries := project.api("GET", f"{path}&limit=50&page={page}"):
        yield from entries
        page += 1


async def lift_locks(project: GiteaProject, observed: Observed, lifted: list[str]) -> None:
    """Be the administrator of the host, who removes the locks that a status names, until this is cancelled."""
    while True:
        for step in observed.all(PROMOTION_STEP):
            message = (step.get("status") or {}).get("message") or ""
            if (said := _LEFT.search(message)) and (there := locks(project, said[1])):
                for lock in there:
                    lock.unlink(missing_ok=True)
                lifted.append(message)
        await asyncio.sleep(0.2)


def locks(project: GiteaProject, branch: str) -> list[Path]:
    """Return the lock files that a push to a branch can have left."""
    return [lock for lock in (project.bare / "HEAD.lock", project.bare / f"refs/heads/{branch}.lock") if lock.exists()]
