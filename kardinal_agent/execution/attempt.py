"""One run over one promotion: observe, decide, act, until there is nothing more to do now.

Two statuses are kept apart: what stands on the server, and the draft that every action moves. The draft is written
before anything that reaches outside the process and after it, and where the run ends; steps that stay inside are
written along. So a promotion without a review costs three writes: before its push, after it, and Verified.

A failure of a step never leaves this module: it becomes a retry with its time in the status, or the end of the
promotion. What does leave is a failure to write the status itself; the queue repeats the run, and since every effect is
looked for before it is made, nothing happens twice.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from kardinal.api import PROMOTION_STEP, Bundle, PromotionStep
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Backoff, Clock, EventRecorder, Result, StatusWriter
from kardinal_agent.errors import classified
from kardinal_agent.execution import transitions
from kardinal_agent.execution.evidence import evidence_of
from kardinal_agent.execution.gates import Gates
from kardinal_agent.execution.machine import (
    SUPERSEDED,
    Abandon,
    Await,
    Delay,
    Fail,
    Hold,
    Rest,
    Run,
    Verify,
    View,
    decide,
)
from kardinal_agent.execution.refusals import refusal, sequence_of
from kardinal_agent.execution.watches import MergeWakes, Pace
from kardinal_agent.execution.withdrawal import withdraw
from kardinal_agent.health.verdict import HealthAdapter
from kardinal_agent.metrics import AgentMetrics
from kardinal_agent.remotes import Remote, Remotes
from kardinal_agent.steps import STEPS, Announcement, Done, StepContext, Waiting
from kardinal_agent.steps.health_check import timeout_of

__all__ = ["Attempt", "Tools"]

STEP_DEADLINE = 100.0
"""Seconds of real time after which a step gives up its worker; less than a reconcile has, so that its status says why.

A transfer under way goes on by itself: the next attempt shares it.
"""

_NEW = timedelta(seconds=2)
"""How old an order must be before it is worth a note that it waits for something."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Tools:
    """What all promotions of an agent share."""

    shard: str | None
    gates: Gates
    health: HealthAdapter
    remotes: Remotes
    status: StatusWriter
    recorder: EventRecorder
    metrics: AgentMetrics
    wakes: MergeWakes
    pace: Pace
    clock: Clock
    backoff: Backoff


class Attempt:
    """See the module."""

    def __init__(self, tools: Tools, raw: JsonObject, bundle: JsonObject | None) -> None:
        self._tools = tools
        self._raw = raw
        self._key: Key = key_of(raw)
        self._step = PromotionStep.model_validate(raw)
        self._known = bundle is not None
        self._bundle = Bundle.model_validate(bundle or {"spec": {"artifacts": {}}})
        self._superseded = self._bundle.status.phase == "Superseded"
        self._sequence = sequence_of(self._step.spec)
        self._refusal = refusal(self._step, self._bundle) if self._known else None
        self._written = self._draft = self._step.status
        self._proof: Done | None = None
        self._remote: Remote | None = None

    async def run(self) -> Result:
        while True:
            view = self._view()
            if not view.holds:
                self._draft = transitions.released(self._draft, now=view.now)
            match decide(view):
                case Rest():
                    return self._rest()
                case Await(message):
                    return await self._await(message)
                case Delay(until):
                    return Result(requeue_after=until - view.now)
                case Hold(message):
                    return await self._hold(message)
                case Fail(reason, message):
                    return await self._fail(reason, message)
                case Verify():
                    return await self._verify()
                case Abandon():
                    result = await self._abandon()
                case Run(index, outside):
                    result = await self._execute(index, outside=outside)
            if result is not None:
                return result

    def _view(self) -> View:
        spec, metadata = self._step.spec, self._step.metadata
        return View(
            spec=spec,
            status=self._draft,
            sequence=self._sequence,
            now=self._tools.clock.now(),
            mine=spec.shard == self._tools.shard and metadata.deletion_timestamp is None,
            bundle_known=self._known,
            superseded=self._superseded,
            refusal=self._refusal,
            holds=self._tools.gates.holds(self._step),
            proven=self._proof is not None,
        )

    async def _execute(self, index: int, *, outside: bool) -> Result | None:
        """Run one step; None when the next decision is due at once."""
        now = self._tools.clock.now()
        self._draft = transitions.entered(
            self._draft, self._sequence, index, now=now, health_timeout=timeout_of(self._step)
        )
        if outside:
            await self._write()
        uses = self._sequence[index].uses
        try:
            async with asyncio.timeout(STEP_DEADLINE):
                outcome = await STEPS[uses].run(self._context(index))
        except Exception as error:
            return await self._failed_attempt(error, uses)
        if isinstance(outcome, Waiting):
            return await self._wait(outcome, uses)
        if index == len(self._sequence) - 1:
            self._proof = outcome
            return None
        self._draft = transitions.succeeded(self._draft, self._sequence, index, outcome, now=self._tools.clock.now())
        self._count(uses, outcome)
        if outcome.announcement:
            self._announce(outcome.announcement)
        return None

    def _context(self, index: int) -> StepContext:
        return StepContext(
            step=self._step,
            bundle=self._bundle,
            status=self._draft,
            sequence=self._sequence,
            index=index,
            gates=lambda: self._tools.gates.results(self._step),
            holds=lambda: self._tools.gates.holds(self._step),
            health=self._tools.health,
            now=self._tools.clock.now(),
            remote=self._open,
        )

    async def _open(self) -> Remote:
        if self._remote is None:
            self._remote = await self._tools.remotes.open(self._step)
        return self._remote

    async def _await(self, message: str) -> Result:
        """Not yet; an order that has just been given may only be ahead of the rest of what was written with it."""
        created = self._step.metadata.creation_timestamp
        age = self._tools.clock.now() - created if created is not None else _NEW
        # The server's clock may be ahead of ours by more than that.
        if timedelta() <= age < _NEW:
            return Result(requeue_after=_NEW - age)
        self._draft = transitions.awaiting(self._draft, message)
        return await self._pause()

    async def _wait(self, outcome: Waiting, uses: str) -> Result:
        """Nothing more to do until something happens or `outcome.until`."""
        if outcome.held:
            return await self._hold("; ".join(self._tools.gates.holds(self._step)) or outcome.message)
        if outcome.subscribe is not None:
            self._tools.wakes.watch(self._key, outcome.subscribe)
        now = self._tools.clock.now()
        wait = outcome.until - now if outcome.until is not None else None
        draft = transitions.told(self._draft, outcome.message)
        only_told = self._draft == self._written and draft != self._written
        patience = self._tools.pace.wait(self._key) if only_told else timedelta()
        if patience:
            return Result(requeue_after=min(patience, wait) if wait is not None else patience)
        self._draft = draft
        if uses == "health-check" and draft != self._written:
            self._tools.pace.note(self._key)
        return await self._pause(wait)

    async def _hold(self, message: str) -> Result:
        news = self._draft.message != message
        self._draft = transitions.held(self._draft, message, now=self._tools.clock.now())
        result = await self._pause()
        if news:
            self._announce(Announcement("Held", message))
        return result

    async def _failed_attempt(self, error: Exception, uses: str) -> Result:
        failure = classified(error)
        if not failure.known:
            log.error("a step failed by a bug", step=uses, exc_info=error)
        if not failure.transient:
            return await self._fail(failure.reason, f"{uses}: {failure.message}")
        attempts = self._draft.retry.attempts if self._draft.retry else 0
        delay = timedelta(seconds=max(self._tools.backoff.delay(attempts), failure.retry_after or 0.0))
        text = f"{uses}: {failure.message}"
        self._draft = transitions.retrying(self._draft, text, now=self._tools.clock.now(), delay=delay)
        result = await self._pause(delay)
        if attempts == 0:
            self._announce(Announcement("Retrying", text), warning=True)
        return result

    async def _abandon(self) -> Result | None:
        """Take back what has not landed; what has goes on to its end."""
        try:
            async with asyncio.timeout(STEP_DEADLINE):
                landed = await withdraw(self._context(len(self._sequence) - 1))
        except Exception as error:
            return await self._failed_attempt(error, "superseded")
        if landed:
            self._superseded = False
            return None
        return await self._fail(SUPERSEDED, f"superseded by a newer Bundle of {self._step.spec.pipeline}")

    async def _fail(self, reason: str, message: str) -> Result:
        now = self._tools.clock.now()
        self._draft = transitions.failed(self._draft, message, now=now)
        await self._write(reason=reason)
        self._announce(Announcement(reason, message), warning=reason != SUPERSEDED)
        if reason != SUPERSEDED:
            self._tools.metrics.failed.labels(self._step.spec.environment, reason).inc()
        self._observe_health("failed")
        return self._rest()

    async def _verify(self) -> Result:
        await self._write()
        now = self._tools.clock.now()
        message = self._proof.message if self._proof else ""
        evidence = evidence_of(self._step, self._draft, self._tools.gates)
        self._draft = transitions.verified(self._draft, message, evidence, now=now)
        await self._write()
        self._announce(Announcement("Verified", message))
        self._observe_health("healthy")
        created = self._bundle.metadata.creation_timestamp
        if created is not None:
            lead = max((now - created).total_seconds(), 0.0)
            self._tools.metrics.lead_time.labels(self._step.spec.environment).observe(lead)
        return self._rest()

    def _rest(self) -> Result:
        self._tools.wakes.release(self._key)
        self._tools.pace.forget(self._key)
        return Result()

    async def _pause(self, wait: timedelta | None = None) -> Result:
        """End the run here, for `wait` at most; nobody is woken by a repository who does not wait for a merge."""
        if self._draft.state != "WaitingForMerge":
            self._tools.wakes.release(self._key)
        await self._write()
        return Result(requeue_after=wait)

    async def _write(self, *, reason: str | None = None) -> None:
        """Make the server's status that of the draft."""
        if self._draft == self._written:
            return
        self._draft = transitions.ready(
            self._draft,
            reason=reason,
            generation=self._step.metadata.generation,
            now=self._tools.clock.now(),
        )
        self._raw = await self._tools.status.write(PROMOTION_STEP, self._raw, self._draft.to_json()) or self._raw
        self._written = self._draft

    def _announce(self, announcement: Announcement, *, warning: bool = False) -> None:
        self._tools.recorder.event(
            self._raw,
            type="Warning" if warning else "Normal",
            reason=announcement.reason,
            note=announcement.note,
        )

    def _count(self, uses: str, outcome: Done) -> None:
        metrics, spec = self._tools.metrics, self._step.spec
        if uses == "open-pr" and outcome.announcement is not None:
            metrics.opened.labels(spec.environment, spec.approval).inc()
        if uses == "wait-for-merge" and "mergedBy" in outcome.outputs:
            metrics.merged.labels(spec.environment).inc()

    def _observe_health(self, result: str) -> None:
        if self._draft.health_deadline is not None:
            began = self._draft.health_deadline - timeout_of(self._step)
            took = (self._tools.clock.now() - began).total_seconds()
            self._tools.metrics.health.labels(self._step.spec.environment, result).observe(max(took, 0.0))
