"""Promotions through an environment that a real GitOps tool deploys, and all that the tool said meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from kardinal.kube import Client
from kardinal.objects import DEPLOYMENT, NAMESPACE, JsonObject, ResourceType
from kardinal.promotion.api import PromotionStep, names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal_agent.health import Adapter, Verdict
from kardinal_agent.health.detection import settled
from tests.health.tools import judged, promotion
from tests.support.names import TEAM
from tests.support.objects import bundle, environment, namespace, pipeline
from tests.support.repository import APPLICATION, GitRepository

__all__ = ["Environment", "changed", "ended", "recorded"]

PATIENCE = 120.0
"""Seconds of real time for anything to happen."""


@dataclass
class Environment:
    """One environment with a Pipeline and a namespace of its own name, in a repository of the sample layout."""

    client: Client
    repository: GitRepository
    name: str
    team: str = TEAM
    """The namespace of the Pipeline."""
    _bundles: list[str] = field(default_factory=list)

    async def open(self, **health: Any) -> None:
        """Make the Pipeline and the namespaces; `health` is in camelCase."""
        for each in (self.name, self.team):
            await self.client.apply(NAMESPACE, namespace(each), field_manager="test")
        stage = environment(self.name, **({"health": health} if health else {}))
        made = pipeline(self.repository, name=self.name, environments=[stage], namespace=self.team)
        await self.client.apply(PIPELINE, made, field_manager="test")

    async def promote(self, tag: str) -> str:
        """Create a Bundle of an image; returns the name of its PromotionStep."""
        self._bundles.append(f"{self.name}-{len(self._bundles) + 1}")
        made = bundle(self._bundles[-1], tag=tag, pipeline=self.name, namespace=self.team)
        await self.client.apply(BUNDLE, made, field_manager="test")
        return names.step_name(self._bundles[-1], self.name)

    async def until(self, step: str, accepts: Callable[[JsonObject], bool]) -> JsonObject:
        """Return the PromotionStep as soon as its status is accepted."""
        return await changed(
            self.client, PROMOTION_STEP, self.team, step, lambda found: accepts(found.get("status") or {})
        )

    async def end_of(self, step: str) -> JsonObject:
        """Return the PromotionStep when it has ended."""
        return await self.until(step, ended)

    async def image(self) -> str:
        """Return what the Deployment of the environment runs."""
        found = await self.client.get(DEPLOYMENT, APPLICATION, self.name)
        image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
        return image

    def since(self, commit: str) -> set[str]:
        """Return the revisions of the branch that contain a commit."""
        return {commit, *self.repository.git("rev-list", f"{commit}..main").split()}

    def verdicts(self, adapter: Adapter, step: JsonObject, versions: Sequence[JsonObject]) -> list[Verdict]:
        """Judge each version of an object by itself, as the proof of a promotion that has landed."""
        landed = settled(PromotionStep.model_validate(step))
        commit = landed.status.commit
        assert commit is not None
        promoted = promotion(
            commit=commit, commits=self.since(commit), repository=self.repository.url, path=landed.spec.path
        )
        return [judged(adapter, landed, promoted, each) for each in versions]


def ended(status: JsonObject) -> bool:
    """Return whether a promotion has ended."""
    return status.get("state") in ("Verified", "Failed")


async def changed(
    client: Client, kind: ResourceType, where: str, name: str, accepts: Callable[[JsonObject], bool]
) -> JsonObject:
    """Return an object as soon as a watch shows it in a state that is accepted."""
    found: JsonObject = {}
    try:
        async with asyncio.timeout(PATIENCE), client.watch(kind, where, initial_events=True) as events:
            async for event in events:
                if event.object["metadata"].get("name") == name:
                    found = event.object
                    if accepts(found):
                        return found
    except TimeoutError:
        pass
    raise AssertionError(f"not within {PATIENCE:g} s: {kind.kind} {where}/{name} is {found.get('status')}")


@asynccontextmanager
async def recorded(client: Client, kind: ResourceType, where: str, name: str) -> AsyncIterator[list[JsonObject]]:
    """Yield a list that gets every version of an object, from the present one on."""
    versions: list[JsonObject] = []
    begun = asyncio.Event()

    async def record() -> None:
        async with client.watch(kind, where, initial_events=True) as events:
            async for event in events:
                begun.set()
                if event.object["metadata"].get("name") == name:
                    versions.append({"apiVersion": kind.api_version, "kind": kind.kind, **event.object})

    recording = asyncio.create_task(record())
    try:
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        yield versions
    finally:
        recording.cancel()
        with suppress(asyncio.CancelledError):
            await recording
