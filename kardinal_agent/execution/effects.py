"""The effects of one run over one promotion: carry out each action that was decided.

Every action changes a draft of the status; `Effects._perform` describes when it is written. The exception of a step
never leaves this module: it becomes a retry with its time in the status, or the end of the promotion. Only a failure to
write the status leaves it; the queue then repeats the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from kardinal.git.inputs import with_inputs
from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.promotion_step import PromotionStepStatus, Proposal
from kardinal.promotion.steps.declaration import PlannedStep
from kardinal.promotion.steps.expressions import check_outputs
from kardinal.promotion.steps.facts import facts_of
from kardinal.promotion.steps.sequence_values import SequenceValues
from kardinal.runtime import Result
from kardinal_agent.errors import Failure, classified
from kardinal_agent.execution import status as statuses
from kardinal_agent.execution.archived import unless_archived
from kardinal_agent.execution.decide import (
    Abandon,
    Action,
    Delay,
    Detect,
    Fail,
    Rest,
    Run,
    Skip,
    Verify,
    Wait,
    WaitKind,
    given_up,
)
from kardinal_agent.execution.draft import StatusDraft
from kardinal_agent.execution.evidence import evidence_of
from kardinal_agent.execution.observe import Facts, Found, observe
from kardinal_agent.execution.ownership import OwnedStep
from kardinal_agent.execution.proposals import take_back, tell_failure
from kardinal_agent.execution.retries import Again, GiveUp, PassOver, RetryPolicy, after_failure, timed_out
from kardinal_agent.execution.rules import Projection, current_index
from kardinal_agent.execution.sources import Sources
from kardinal_agent.execution.tools import Tools
from kardinal_agent.remotes import Queued, Remote
from kardinal_agent.steps import Done, StepContext, StepResult, Waiting
from kardinal_agent.steps.detection import DETECT_AGAIN, detect

__all__ = ["Effects"]

STEP_DEADLINE = 100.0
"""Seconds of real time after which a step is cancelled: less than a run may take, so that the status has the reason.

A transfer that is under way continues: the next try of the step uses it.
"""

QUEUE_CHECK = timedelta(seconds=30)
"""The interval in which a promotion asks again whether it has its turn at a host."""

VERIFYING_CHECK = timedelta(seconds=30)
"""The longest time between two looks at the health of an environment whose metrics are waited for."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Effects:
    """One run over one PromotionStep; `kept` is the open proposal of an earlier attempt, which goes on."""

    def __init__(self, tools: Tools, raw: JsonObject, owned: OwnedStep, *, kept: Proposal | None = None) -> None:
        self._tools = tools
        self._key: Key = key_of(raw)
        self._owned = owned
        self._step = owned.step
        self._bundle = owned.bundle
        self._gates = tools.gates.of(owned)
        self.plan = tools.plans.of(self._step, self._bundle)
        self._sequence = self.plan.sequence
        self._values = SequenceValues(self._step, self._bundle, self._sequence)
        self._draft = StatusDraft(
            raw, self._step, self._bundle, writer=tools.status, events=tools.events, clock=tools.clock
        )
        self._kept = kept
        self._found = Found(mended=tools.credentials.take(self._key))
        self._proof: Done | None = None
        self._remote: Remote | None = None
        self._sources = Sources(self._step, self._bundle, tools.remotes, remote=self._open)

    def begin(self) -> None:
        """Start from the status on the server, or from an empty one if the spec asks for another attempt."""
        if (number := self._step.spec.attempt) and number != self._draft.status.attempt:
            self._draft.move(statuses.restarted(number, self._kept))
        self._draft.move(statuses.taken(statuses.owned(self._draft.status, now=self._tools.clock.now())))

    def observe(self) -> Facts:
        """Return the facts for the next decision."""
        return observe(
            self._owned,
            self._draft.status,
            self._found,
            gates=self._gates,
            verification=self._tools.metrics.of(self._step, self._draft.status),
            shard=self._tools.shard,
            clock=self._tools.clock,
        )

    async def carry_out(self, action: Action, facts: Facts, projection: Projection) -> Result | None:
        """Carry out one action; return None if the next decision is due at once, otherwise the time of the next run."""
        if not facts.holds:
            self._draft.move(statuses.released(facts.status, now=facts.now, reason=statuses.HELD))
        match action:
            case Rest():
                return self._rest()
            case Wait():
                # While metrics are waited for, the environment must stay healthy.
                look = VERIFYING_CHECK if self._found.proven else None
                return await self._pause(statuses.paused(self._draft.status, action, now=self._tools.clock.now()), look)
            case Delay(until):
                return Result(requeue_after=until - facts.now)
            case Fail(reason, message):
                return await self._fail(reason, message)
            case Detect():
                return await self._detect()
            case Verify():
                return await self._verify()
            case Abandon():
                return await self._abandon(projection)
            case Skip(index, message):
                now = self._tools.clock.now()
                self._draft.move(statuses.skipped(self._draft.status, self._sequence[index], index, message, now=now))
                return None
            case Run(index, outside):
                return await self._go_on(index, outside=outside)

    def end_deleted(self) -> Result:
        """End the run of a PromotionStep that is gone, or being deleted."""
        self._account_for_landing()
        return self._rest()

    def close(self) -> None:
        """Release the repositories and shares of hosts of this run."""
        self._sources.release()
        if self._remote is not None:
            self._remote.release()

    def _holds(self) -> list[str]:
        return self._gates.holds(landed=self._draft.status.promoted_at is not None)

    async def _perform(self, index: int, *, outside: bool) -> StepResult | Failure:
        """Run one step with the writes that make its effect happen exactly once.

        The process may be killed between any two lines, and only the status on the server is remembered. Therefore:

        1. Before a step with an effect outside, the status has the step as Running. From then on there may be an
           effect, which is withdrawn if the Bundle is superseded.
        2. The step looks for its effect before it makes it: a commit by its trailers, a pull request by its branch. So
           a run after a kill finds the effect, and makes nothing twice.
        3. After the effect, its result is in the draft, which is written before the next effect, before Verified, and
           at the end of the run. If that write is lost, the step is run again, and 2 holds.

        Results of steps without an effect outside wait for these writes: a promotion without a review costs three of
        them, before its push, after it, and Verified.
        """
        step = self._sequence[index]
        now = self._tools.clock.now()
        timeout = self._step.spec.health.timeout
        if outside:
            await self._tools.proposals.note(self._draft, self._context(index, self._sequence))
        self._draft.move(statuses.entered(self._draft.status, step, index, now=now, timeout=timeout))
        if outside:
            await self._draft.write()
            self._tools.proposals.check(self._draft)
        return await self._caught(unless_archived(self._execute(index), self._open), name=step.name)

    async def _execute(self, index: int) -> StepResult:
        """Run a step; expressions in its config and in the configs of the edits before it have their values."""
        sequence = self._values.resolved(index, self._draft.status)
        await self._sources.open(sequence, index, self._draft.status)
        effect = self._tools.steps.get(sequence[index].name, self._tools.custom)
        result = await with_inputs(lambda: effect.run(self._context(index, sequence)))
        if isinstance(result, Done):
            check_outputs(result.outputs)
        return result

    async def _go_on(self, index: int, *, outside: bool) -> Result | None:
        """Run one step and put its result into the draft; None if the next decision is due at once."""
        step = self._sequence[index]
        result = await self._perform(index, outside=outside)
        if not isinstance(result, Done):
            now = self._tools.clock.now()
            deadline = self._draft.status.steps[index].deadline
            result = timed_out(step, result.message, deadline=deadline, now=now) or result
        if isinstance(result, Failure):
            return await self._failed_attempt(result, step.name, index)
        if isinstance(result, Waiting):
            return await self._wait(result, deadline=self._draft.status.steps[index].deadline)
        if step.declaration.proves:
            self._draft.move(statuses.updated(self._draft.status, result.update))
            self._proof = result
            self._found = replace(self._found, proven=True)
            return None
        self._tools.merges.release(self._key)
        now = self._tools.clock.now()
        self._draft.move(statuses.succeeded(self._draft.status, step, index, result, now=now), result.announcement)
        return None

    async def _detect(self) -> Result | None:
        """Find the object that proves the environment; the next write of the status includes it."""
        found = await self._caught(detect(self._context(0, self._sequence)), name="proof")
        if isinstance(found, Failure):
            return await self._failed_attempt(found, "proof")
        if isinstance(found, Waiting):
            now = self._tools.clock.now()
            wait = Wait(WaitKind.START, found.message)
            return await self._pause(statuses.paused(self._draft.status, wait, now=now), DETECT_AGAIN)
        self._draft.move(statuses.updated(self._draft.status, found.update), found.announcement)
        return None

    async def _abandon(self, projection: Projection) -> Result | None:
        """Withdraw the change if it has not landed; a landed change goes on to its proof."""
        reason, message = given_up(projection, self._step.spec.pipeline)
        context = self._context(len(self._sequence) - 1, self._sequence)
        landed = await self._caught(take_back(context, message), name="superseded")
        if isinstance(landed, Failure):
            return await self._failed_attempt(landed, "superseded")
        if isinstance(landed, Waiting):
            return await self._wait(landed)
        if landed:
            self._found = replace(self._found, landed=True)
            return None
        self._draft.move(statuses.withdrawn(self._draft.status))
        return await self._fail(reason, message)

    async def _caught(self, action: Awaitable[T], *, name: str) -> T | Waiting | Failure:
        """Await an action of a step; an exception of it becomes a failure."""
        try:
            async with asyncio.timeout(STEP_DEADLINE):
                return await action
        except Queued as queued:
            until = self._tools.clock.now() + QUEUE_CHECK
            return Waiting(queued.message, until=until, subscribe=queued.subscribe)
        except Exception as error:
            failure = classified(error)
            if not failure.known:
                log.error("a step failed by a bug", step=name, exc_info=error)
            return failure

    def _context(self, index: int, sequence: Sequence[PlannedStep]) -> StepContext:
        return StepContext(
            step=self._step,
            bundle=self._bundle,
            status=self._draft.status,
            sequence=sequence,
            index=index,
            gates=self._gates.results,
            metrics=self._gates.metrics,
            holds=self._holds,
            health=self._tools.health,
            now=self._tools.clock.now(),
            remote=self._open,
            host_memory=self._tools.host_memory,
            open_source=self._sources.repository,
            surroundings=self._sources.surroundings(renderer=self._tools.renderer),
        )

    async def _open(self) -> Remote:
        if self._remote is None:
            self._remote = await self._tools.remotes.open(self._step)
        return self._remote

    async def _wait(self, waiting: Waiting, *, deadline: datetime | None = None) -> Result:
        """End the run until something happens, or the first of `waiting.until` and the deadline of the step."""
        now = self._tools.clock.now()
        if waiting.subscribe is not None:
            self._tools.merges.watch(self._key, waiting.subscribe)
        wait = min((moment - now for moment in (waiting.until, deadline) if moment is not None), default=None)
        if waiting.location is not None:
            index = current_index(self._draft.status, self.plan.declarations)
            self._draft.move(statuses.located(self._draft.status, index, waiting.location))
        before = statuses.updated(self._draft.status, waiting.update)
        status = statuses.paused(before, Wait(waiting.kind, waiting.message), now=now)
        if waiting.kind is WaitKind.STEP and status != self._draft.written:
            nothing_else = before == self._draft.written
            if nothing_else and (delay := self._tools.progress.delay(self._key, urgent=waiting.needs_person)):
                return Result(requeue_after=min(delay, wait) if wait is not None else delay)
            self._tools.progress.note(self._key, urgent=waiting.needs_person)
        return await self._pause(status, wait)

    async def _failed_attempt(self, failure: Failure, name: str, index: int | None = None) -> Result | None:
        """Try the step again, pass over the step at `index`, or end the promotion."""
        status = self._draft.status
        now = self._tools.clock.now()
        policy = RetryPolicy(name=name, backoff=self._tools.backoff)
        if index is not None:
            step = self._sequence[index].spec
            policy = replace(
                policy,
                attempts=step.retry.attempts if step.retry else None,
                optional=bool(step.continue_on_error),
                deadline=status.steps[index].deadline,
            )
        match after_failure(status, failure, policy, now=now):
            case GiveUp(reason, message):
                return await self._fail(reason, message)
            case PassOver(message):
                assert index is not None  # noqa: S101 - only a step is optional
                self._tools.merges.release(self._key)
                self._draft.move(statuses.passed_over(status, self._sequence[index], index, message, now=now))
                return None
            case Again(after, delay):
                secret = self._step.spec.git.secret_ref
                if failure.blocked and secret is not None:
                    self._tools.credentials.wait(self._key, Key(self._key.namespace, secret.name))
                return await self._pause(after, delay)

    async def _fail(self, reason: str, message: str) -> Result:
        begun = self._draft.status.started_at is not None
        evidence = self._evidence() if begun else None
        if self._sequence:
            await tell_failure(self._context(len(self._sequence) - 1, self._sequence), message)
        status = statuses.failed(self._draft.status, message, evidence, now=self._tools.clock.now())
        await self._draft.save(status, reason=reason)
        return self._rest()

    async def _verify(self) -> Result:
        """Write the result of the proof first, as after every effect, and then Verified."""
        await self._draft.write()
        status = self._draft.status
        message = self._proof.message if self._proof else ""
        await self._draft.save(statuses.verified(status, message, self._evidence(), now=self._tools.clock.now()))
        return self._rest()

    def _evidence(self) -> Evidence:
        """Return the evidence of the promotion if it ends now."""
        return evidence_of(
            self._step,
            self._bundle,
            self._draft.status,
            self._sequence,
            gates=self._gates.results(),
            metrics=self._metrics(),
            gate_duration=self._gates.duration(),
            now=self._tools.clock.now(),
        )

    def _metrics(self) -> dict[str, float]:
        """Return the values of metrics by which gates let the promotion through, and those of its verification."""
        verification = self._tools.metrics.of(self._step, self._draft.status)
        return {**self._gates.metrics(), **(verification.values if verification is not None else {})}

    def _account_for_landing(self) -> None:
        """Log a landed change that is in no status. No Event is written, because the namespace may be being deleted."""
        commit = self._draft.untold_landing()
        changed = facts_of(self._draft.status, self._sequence).changed
        if commit is not None and changed is not False:
            branch = self._step.spec.target_branch
            event = "a change has landed whose promotion was deleted meanwhile"
            log.warning(event, promotion=str(self._key), branch=branch, commit=commit)

    def _rest(self) -> Result:
        self._tools.memory.attempt.drop(self._key)
        self._tools.memory.proof.drop(self._key)
        return Result()

    async def _pause(self, status: PromotionStepStatus, wait: timedelta | None = None) -> Result:
        """Write the status and end the run; the next one is after `wait` at the latest."""
        await self._draft.save(status)
        return Result(requeue_after=wait)
