"""Go on looking at what is Verified, as long as something depends on it.

An environment is looked at while the Bundle still runs there and an environment right after it has neither landed nor
ended; and, once it is no longer healthy, until it is again, so that its status never tells of a trouble that is over.
The Graph says what comes after, the Bundle how far that is and whether another one runs here: both are read anew at
each run, and a run follows each change of them. Where nothing depends any more, nothing is watched.

Another Bundle never depends on it: what it proves in an environment is its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from kardinal.api.bundle import EnvironmentStatus
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Informer, Result
from kardinal.steps.sequence import planned
from kardinal.translation.recorded import Untraceable
from kardinal_agent.execution.attempt import STEP_DEADLINE
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.execution.ownership import OwnedStep, Ownership
from kardinal_agent.execution.tools import Tools
from kardinal_agent.health.checks import Finding
from kardinal_agent.health.upkeep import Trouble, outlook
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.proof import Proof

__all__ = ["VerifiedSteps"]

_NOTHING_FOLLOWS = frozenset(["Verified", "Superseded", "SkipDenied"])
"""Phases of a Bundle that goes nowhere any more. In a failed one, environments beside the failed one still go on."""

_OVER = frozenset(["Verified", "Failed", "Superseded"])


class VerifiedSteps:
    """Looks at the environments of PromotionSteps that are Verified."""

    def __init__(self, tools: Tools, *, bundles: Informer, ownership: Ownership) -> None:
        self._tools = tools
        self._bundles = bundles
        self._ownership = ownership
        self._troubles: dict[Key, Trouble] = {}

    def forget(self, key: Key) -> None:
        """Forget what was seen of a step that is under way, again or still."""
        self._troubles.pop(key, None)

    def release(self, key: Key) -> None:
        """Look no more."""
        self._tools.health.release(key)
        self.forget(key)

    async def look(self, raw: JsonObject) -> Result:
        """Look at the environment of a step that has ended, if that is of use, and write what has changed."""
        key, owned = key_of(raw), self._watched(raw)
        if owned is None:
            self.release(key)
            return Result()
        found = await self._found(owned)
        draft = StatusDraft(
            raw,
            owned.step,
            owned.bundle,
            writer=self._tools.status,
            observer=self._tools.observer,
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
            self.forget(key)
        try:
            await draft.save(outcome.status)
        except StepDeleted:
            self.release(key)
            return Result()
        return Result(requeue_after=outcome.again)

    def _watched(self, raw: JsonObject) -> OwnedStep | None:
        """Return the step where there is a reason to look; None where there is none.

        Most steps are of Bundles that have ended long ago: those are told by the phase alone.
        """
        status, metadata = raw.get("status") or {}, raw["metadata"]
        if status.get("state") != "Verified" or "deletionTimestamp" in metadata:
            return None
        bundle = self._bundles.get(metadata["namespace"], raw["spec"]["bundleRef"])
        unhealthy = status.get("healthy") is False
        if bundle is None or ((bundle.get("status") or {}).get("phase") in _NOTHING_FOLLOWS and not unhealthy):
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

    async def _found(self, owned: OwnedStep) -> Finding:
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
    """Return whether the Bundle, in this attempt, is what runs in the environment of a step."""
    entry = entries.get(owned.step.spec.environment)
    if entry is None or entry.state != "Verified" or entry.replaced_at is not None:
        return False
    return entry.attempt == owned.step.spec.attempt


def _is_over(entry: EnvironmentStatus | None) -> bool:
    """Return whether an environment needs what is before it no more: it has landed, has ended or was taken over."""
    if entry is None:
        return False
    return entry.promoted_at is not None or entry.displaced_by is not None or entry.state in _OVER
