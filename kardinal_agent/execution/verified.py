"""Observe the health of a Verified environment, as long as another promotion depends on it.

An environment is observed while the Bundle still runs there and an environment directly downstream has neither landed
nor ended; and, once it is no longer healthy, until it is healthy again, so that its status reports no past trouble.
The Graph has the downstream environments, the Bundle their states and whether another Bundle runs here. Both are read
anew at each run, and each change of them causes a run. Without such a dependence nothing is watched.

Other Bundles never depend on it, because they prove each environment themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api.bundle import SETTLED_PHASES, EnvironmentStatus
from kardinal.promotion.steps.sequence import planned
from kardinal.promotion.translation.recorded import Untraceable
from kardinal.runtime import Informer, Result
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.execution.effects import STEP_DEADLINE
from kardinal_agent.execution.ownership import OwnedStep, Ownership
from kardinal_agent.execution.tools import Tools
from kardinal_agent.health.checks import CheckResult
from kardinal_agent.health.upkeep import Trouble, outlook
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.proof import Proof

__all__ = ["VerifiedSteps"]


class VerifiedSteps:
    """Observes the environments of Verified PromotionSteps."""

    def __init__(self, tools: Tools, *, bundles: Informer, ownership: Ownership) -> None:
        self._tools = tools
        self._bundles = bundles
        self._ownership = ownership
        self._troubles: dict[Key, Trouble] = tools.memory.proof.map()

    def end(self, key: Key) -> None:
        """Note that an environment has no trouble, or is promoted to again."""
        self._troubles.pop(key, None)

    async def look(self, raw: JsonObject) -> Result:
        """Observe the environment of an ended step if another one depends on it, and write the changed status."""
        key = key_of(raw)
        owned = self._watched(raw)
        if owned is None:
            self._tools.memory.proof.drop(key)
            return Result()
        found = await self._found(owned)
        draft = StatusDraft(
            raw,
            owned.step,
            owned.bundle,
            writer=self._tools.status,
            events=self._tools.events,
            clock=self._tools.clock,
        )
        outcome = outlook(
            draft.status,
            found,
            self._troubles.get(key),
            now=self._tools.clock.now(),
            monotonic=self._tools.clock.monotonic(),
            degraded_after=owned.step.spec.health.degraded_after,
        )
        if outcome.trouble is not None:
            self._troubles[key] = outcome.trouble
        else:
            self.end(key)
        try:
            await draft.save(outcome.status)
        except StepDeleted:
            self._tools.memory.proof.drop(key)
            return Result()
        return Result(requeue_after=outcome.again)

    def _watched(self, raw: JsonObject) -> OwnedStep | None:
        """Return the step if its environment is to be observed, otherwise None.

        Most steps belong to Bundles that ended long ago; for those the phase is enough.
        """
        status = raw.get("status") or {}
        metadata = raw["metadata"]
        if status.get("state") != "Verified" or "deletionTimestamp" in metadata:
            return None
        bundle = self._bundles.get(metadata["namespace"], raw["spec"]["bundleRef"])
        unhealthy = status.get("healthy") is False
        if bundle is None or ((bundle.get("status") or {}).get("phase") in SETTLED_PHASES and not unhealthy):
            return None
        try:
            owned = self._ownership.trace(raw)
        except Untraceable:
            return None
        entries = owned.bundle.status.environments
        if not _runs_here(entries, owned) or self._tools.health.refusal(owned.step) is not None:
            return None
        follows = any(not _is_over(entries.get(name)) for name in owned.dependents)
        return owned if follows or unhealthy else None

    async def _found(self, owned: OwnedStep) -> CheckResult:
        remote: Remote | None = None

        async def opened() -> Remote:
            nonlocal remote
            if remote is None:
                remote = await self._tools.remotes.open(owned.step)
            return remote

        sequence = planned(owned.step.spec.steps, self._tools.registry.steps)
        try:
            async with asyncio.timeout(STEP_DEADLINE):
                return await Proof(owned.step, owned.bundle, sequence, self._tools.health, opened).look()
        finally:
            if remote is not None:
                remote.release()


def _runs_here(entries: Mapping[str, EnvironmentStatus], owned: OwnedStep) -> bool:
    """Return whether this attempt of the Bundle runs in the environment of a step."""
    entry = entries.get(owned.step.spec.environment)
    if entry is None or entry.state != "Verified" or entry.replaced_at is not None:
        return False
    return entry.attempt == owned.step.spec.attempt


def _is_over(entry: EnvironmentStatus | None) -> bool:
    """Return whether an environment no longer depends on its upstream: it has landed, has ended or was superseded."""
    if entry is None:
        return False
    return entry.promoted_at is not None or entry.displaced_by is not None or entry.has_ended
