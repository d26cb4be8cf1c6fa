"""Observe a Verified environment, as long as another promotion depends on its health or on what it has applied.

An environment is observed while the Bundle still runs there and an environment directly downstream has neither landed
nor ended; and, once it is no longer healthy, until it is healthy again, so that its status reports no past trouble.
The Graph has the downstream environments, the Bundle their states and whether another Bundle runs here. Both are read
anew at each run, and each change of them causes a run. Without such a dependence nothing is watched.

Other Bundles never depend on its health, because they prove each environment themselves. While a gate before the next
promotion to the environment reads `targetDrift`, what its tool has not applied is noted as well, also in one that has
landed and Failed (`target_drift`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api.bundle import SETTLED_PHASES, EnvironmentStatus
from kardinal.promotion.api.promotion_step import TargetDrift
from kardinal.promotion.steps.sequence import planned
from kardinal.promotion.translation.recorded import Untraceable
from kardinal.runtime import Informer, Result
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.execution.effects import STEP_DEADLINE
from kardinal_agent.execution.ownership import OwnedStep, Ownership
from kardinal_agent.execution.target_drift import LOOK_AGAIN, DriftDemand, is_over, noted_drift, seen_drift
from kardinal_agent.execution.tools import Tools
from kardinal_agent.health.checks import CheckResult
from kardinal_agent.health.upkeep import Trouble, outlook
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.proof import Proof

__all__ = ["VerifiedSteps"]


class VerifiedSteps:
    """Observes the environments of Verified PromotionSteps."""

    def __init__(self, tools: Tools, *, bundles: Informer, ownership: Ownership, demand: DriftDemand) -> None:
        self._tools = tools
        self._bundles = bundles
        self._ownership = ownership
        self._demand = demand
        self._troubles: dict[Key, Trouble] = tools.memory.proof.map()

    def end(self, key: Key) -> None:
        """Note that an environment has no trouble, or is promoted to again."""
        self._troubles.pop(key, None)

    async def look(self, raw: JsonObject) -> Result:
        """Observe the environment of an ended step if something depends on it, and write the changed status."""
        key = key_of(raw)
        asked = self._demand.asks(raw)
        owned = self._watched(raw, asked=asked)
        if owned is None:
            self._tools.memory.proof.drop(key)
            return Result()
        draft = StatusDraft(
            raw,
            owned.step,
            owned.bundle,
            writer=self._tools.status,
            events=self._tools.events,
            clock=self._tools.clock,
        )
        found, drift = await self._found(owned, asked=asked)
        status = draft.status
        again = LOOK_AGAIN if asked else None
        if found is not None:
            outcome = outlook(
                status,
                found,
                self._troubles.get(key),
                now=self._tools.clock.now(),
                monotonic=self._tools.clock.monotonic(),
                degraded_after=owned.step.spec.health.degraded_after,
            )
            status = outcome.status
            again = min((each for each in (again, outcome.again) if each is not None), default=None)
            if outcome.trouble is not None:
                self._troubles[key] = outcome.trouble
            else:
                self.end(key)
        if not asked and status.target_drift is not None:
            # The next run ends the watches if nothing else depends on the environment.
            again = timedelta()
        try:
            await draft.save(status.model_copy(update={"target_drift": drift}))
        except StepDeleted:
            self._tools.memory.proof.drop(key)
            return Result()
        return Result(requeue_after=again)

    def _watched(self, raw: JsonObject, *, asked: bool) -> OwnedStep | None:
        """Return the step if its environment is to be observed, otherwise None.

        Most steps belong to Bundles that ended long ago; for those the phase is enough.
        """
        status = raw.get("status") or {}
        metadata = raw["metadata"]
        drifting = asked or "targetDrift" in status
        if (status.get("state") != "Verified" and not drifting) or "deletionTimestamp" in metadata:
            return None
        bundle = self._bundles.get(metadata["namespace"], raw["spec"]["bundleRef"])
        wanted = status.get("healthy") is False or drifting
        if bundle is None or ((bundle.get("status") or {}).get("phase") in SETTLED_PHASES and not wanted):
            return None
        try:
            owned = self._ownership.trace(raw)
        except Untraceable:
            return None
        entries = owned.bundle.status.environments
        if not _runs_here(entries, owned) or self._tools.health.refusal(owned.step) is not None:
            return None
        follows = any(not is_over(entries.get(name)) for name in owned.dependents)
        return owned if follows or wanted else None

    async def _found(self, owned: OwnedStep, *, asked: bool) -> tuple[CheckResult | None, TargetDrift | None]:
        """Return the verdict on a Verified environment, and what its tool has not applied if a gate asks for it."""
        remote: Remote | None = None

        async def opened() -> Remote:
            nonlocal remote
            if remote is None:
                remote = await self._tools.remotes.open(owned.step)
            return remote

        sequence = planned(owned.step.spec.steps, self._tools.registry.steps)
        proof = Proof(owned.step, owned.bundle, sequence, self._tools.health, opened)
        status = owned.step.status
        drift: TargetDrift | None = None
        try:
            async with asyncio.timeout(STEP_DEADLINE):
                found = await proof.look() if status.state == "Verified" else None
                if asked:
                    seen = await seen_drift(await proof.applied(), owned.step, opened)
                    drift = noted_drift(seen, status.target_drift, now=self._tools.clock.now())
        finally:
            if remote is not None:
                remote.release()
        return found, drift


def _runs_here(entries: Mapping[str, EnvironmentStatus], owned: OwnedStep) -> bool:
    """Return whether this attempt of the Bundle runs in the environment of a step."""
    entry = entries.get(owned.step.spec.environment)
    if entry is None or entry.promoted_at is None or entry.replaced_at is not None:
        return False
    if entry.state != owned.step.status.state:
        return False
    return entry.attempt == owned.step.spec.attempt
