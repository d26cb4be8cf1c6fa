"""One run over one promotion: observe, decide, act, until there is nothing more to do now.

Every action moves a draft of the status; `Attempt._perform` says when it is written. A failure of a step never leaves
this module: it becomes a retry with its time in the status, or the end of the promotion. Only a failure to write the
status itself does; the queue then repeats the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from kardinal.api import format_duration
from kardinal.api.evidence import Evidence
from kardinal.api.promotion_step import PromotionStepStatus, Proposal
from kardinal.git.inputs import with_inputs
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Result
from kardinal.steps.declaration import PlannedStep
from kardinal.steps.expressions import check_outputs
from kardinal.steps.facts import facts_of
from kardinal.steps.pins import undetermined
from kardinal.steps.sequence import planned
from kardinal.steps.sequence_values import SequenceValues
from kardinal_agent.errors import Failure, classified
from kardinal_agent.execution import transitions
from kardinal_agent.execution.archived import unless_archived
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.execution.evidence import evidence_of
from kardinal_agent.execution.machine import (
    Abandon,
    Ask,
    Await,
    Block,
    Delay,
    Detect,
    Fail,
    Hold,
    Observation,
    Rest,
    Run,
    Skip,
    Verify,
    current_index,
    decide,
    given_up,
)
from kardinal_agent.execution.ownership import OwnedStep
from kardinal_agent.execution.refusals import refusal
from kardinal_agent.execution.retries import again, limited_by
from kardinal_agent.execution.sources import Sources
from kardinal_agent.execution.tools import Tools
from kardinal_agent.execution.withdrawal import tell_failure, withdraw
from kardinal_agent.health import undetected
from kardinal_agent.remotes import Queued, Remote
from kardinal_agent.steps import Done, StepContext, StepResult, Waiting
from kardinal_agent.steps.detection import DETECT_AGAIN, detect

__all__ = ["Attempt"]

STEP_DEADLINE = 100.0
"""Seconds of real time after which a step gives up its worker; less than a reconcile has, so that its status says why.

A transfer under way goes on by itself: the next attempt shares it.
"""

QUEUE_CHECK = timedelta(seconds=30)
"""How often a promotion that waits for its turn at a host looks by itself."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Attempt:
    """One run over one PromotionStep; `kept` is the proposal of the attempt before, if it is still open."""

    def __init__(self, tools: Tools, raw: JsonObject, owned: OwnedStep, *, kept: Proposal | None = None) -> None:
        self._tools = tools
        self._key: Key = key_of(raw)
        self._step = owned.step
        self._bundle = owned.bundle
        self._gates = tools.gates.of(owned)
        entry = self._bundle.status.environments.get(self._step.spec.environment)
        # What is decided about another attempt says nothing about this one.
        self._entry = entry if entry is not None and entry.attempt == self._step.spec.attempt else None
        self._successor = (self._entry.displaced_by if self._entry else None) or ""
        self._stopped = (self._entry.stopped if self._entry else None) or ""
        superseded = self._entry is not None and self._bundle.status.phase == "Superseded"
        self._superseded = bool(self._successor or self._stopped) or superseded
        self._refusal = refusal(self._step, self._bundle, tools.registry, tools.health)
        self._sequence = planned(self._step.spec.steps, tools.registry.steps) if self._refusal is None else ()
        self._values = SequenceValues(self._step, self._bundle, self._sequence)
        self._draft = StatusDraft(
            raw, self._step, self._bundle, writer=tools.status, observer=tools.observer, clock=tools.clock
        )
        self._kept = kept
        self._mended = tools.credentials.take(self._key)
        self._proof: Done | None = None
        self._remote: Remote | None = None
        self._sources = Sources(self._step, self._bundle, tools.remotes, remote=self._open)

    async def run(self) -> Result:
        """Go as far as it goes now; the result says when to look again even if nothing happens."""
        if (number := self._step.spec.attempt) and number != self._draft.status.attempt:
            self._draft.move(transitions.restarted(number, self._kept))
        try:
            return await self._run()
        except StepDeleted:
            self._account_for_landing()
            return self._rest()
        finally:
            self._sources.release()
            if self._remote is not None:
                self._remote.release()

    async def _run(self) -> Result:
        result: Result | None = None
        self._draft.move(transitions.taken(transitions.owned(self._draft.status, now=self._tools.clock.now())))
        while result is None:
            seen = self._observe()
            if not seen.holds:
                self._draft.move(transitions.released(seen.status, now=seen.now, reason=transitions.HELD))
            match decide(seen):
                case Rest():
                    result = self._rest()
                case Await() | Ask() | Block() | Hold() as wait:
                    now = self._tools.clock.now()
                    result = await self._pause(transitions.paused(self._draft.status, wait, now=now))
                case Delay(until):
                    result = Result(requeue_after=until - seen.now)
                case Fail(reason, message):
                    result = await self._fail(reason, message)
                case Detect():
                    result = await self._detect()
                case Verify():
                    result = await self._verify()
                case Abandon():
                    result = await self._abandon()
                case Skip(index, message):
                    step, now = self._sequence[index], self._tools.clock.now()
                    self._draft.move(transitions.skipped(self._draft.status, step, index, message, now=now))
                case Run(index, outside):
                    result = await self._go_on(index, outside=outside)
        return result

    def _observe(self) -> Observation:
        spec, metadata = self._step.spec, self._step.metadata
        status, declarations = self._draft.status, [step.declaration for step in self._sequence]
        index = current_index(status, declarations) if declarations else None
        skip, undecided = self._values.left_out(index, status) if index is not None else (None, None)
        return Observation(
            spec=spec,
            status=status,
            sequence=declarations,
            now=self._tools.clock.now(),
            created=metadata.creation_timestamp,
            mine=spec.shard == self._tools.shard and metadata.deletion_timestamp is None,
            superseded=self._superseded,
            successor=self._successor,
            stopped=self._stopped,
            admitted=self._entry is not None and self._entry.admitted_at is not None,
            queued=(self._entry.message if self._entry else None) or "",
            refusal=self._refusal,
            holds=self._holds(),
            mended=self._mended,
            undetermined=undetermined(self._bundle, spec.update, spec.steps),
            undetected=undetected(self._step.model_copy(update={"status": status})),
            proven=self._proof is not None,
            skip=skip,
            undecided=undecided,
        )

    def _holds(self) -> list[str]:
        return self._gates.holds(landed=self._draft.status.promoted_at is not None)

    async def _perform(self, index: int, *, outside: bool) -> StepResult | Failure:
        """Run one step with the writes that make its effect happen exactly once.

        The process may die between any two lines, and all that is remembered is the status on the server. Therefore:

        1. Before a step that reaches outside, the status says that it is running. From then on there may be an effect,
           and a Bundle that is superseded has something to take back.
        2. The step looks for its effect before it makes it: a commit by its trailers, a pull request by its branch. So
           an attempt that follows one that died finds what was made, and makes nothing twice.
        3. After the effect, its result is in the draft, which is written before the next effect, before Verified, and
           where the run ends. When that write is lost, the step is run again, and 2 holds.

        Steps that stay inside are written along: a promotion without a review costs three writes, before its push,
        after it, and Verified.
        """
        step, now = self._sequence[index], self._tools.clock.now()
        timeout = self._step.spec.health.timeout
        if outside:
            await self._tools.proposals.note(self._draft, self._context(index, self._sequence))
        self._draft.move(transitions.entered(self._draft.status, step, index, now=now, timeout=timeout))
        if outside:
            await self._draft.write()
            self._tools.proposals.check(self._draft)
        return await self._caught(unless_archived(self._execute(index), self._open), name=step.name)

    async def _execute(self, index: int) -> StepResult:
        """Run a step with the values of the expressions in its config, and in those of the edits before it."""
        sequence = self._values.resolved(index, self._draft.status)
        await self._sources.open(sequence, index, self._draft.status)
        effect = self._tools.steps.get(sequence[index].name, self._tools.custom)
        result = await with_inputs(lambda: effect.run(self._context(index, sequence)))
        if isinstance(result, Done):
            check_outputs(result.outputs)
        return result

    async def _go_on(self, index: int, *, outside: bool) -> Result | None:
        """Run one step and take its result over; None when the next decision is due at once."""
        step = self._sequence[index]
        result = await self._perform(index, outside=outside)
        if not isinstance(result, Done) and self._overdue(index) and step.time_limit is not None:
            limit = format_duration(step.time_limit)
            result = Failure("StepTimeout", f"not done within {limit}: {result.message}", transient=False)
        if isinstance(result, Failure):
            return await self._failed_attempt(result, index)
        if isinstance(result, Waiting):
            return await self._wait(result, deadline=self._deadline(index))
        if step.declaration.proves:
            self._draft.move(transitions.updated(self._draft.status, result.update))
            self._proof = result
            return None
        self._tools.merges.release(self._key)
        now = self._tools.clock.now()
        self._draft.move(transitions.succeeded(self._draft.status, step, index, result, now=now), result.announcement)
        return None

    async def _failed_attempt(self, failure: Failure, index: int) -> Result | None:
        """Repeat the step, go on without it, or end the promotion."""
        step, status = self._sequence[index], self._draft.status
        failure = limited_by(step, status, failure)
        if failure.transient or not step.spec.continue_on_error:
            return await self._retry(failure, name=step.name, deadline=self._deadline(index))
        self._tools.merges.release(self._key)
        now = self._tools.clock.now()
        self._draft.move(transitions.passed_over(status, step, index, failure.message, now=now))
        return None

    def _deadline(self, index: int) -> datetime | None:
        return self._draft.status.steps[index].deadline

    def _overdue(self, index: int) -> bool:
        deadline = self._deadline(index)
        return deadline is not None and self._tools.clock.now() >= deadline

    async def _detect(self) -> Result | None:
        """Find what proves the environment; the next write of the status takes it along."""
        found = await self._caught(detect(self._context(0, self._sequence)), name="proof")
        if isinstance(found, Failure):
            return await self._retry(found, name="proof")
        if isinstance(found, Waiting):
            return await self._pause(transitions.awaiting(self._draft.status, found.message), DETECT_AGAIN)
        self._draft.move(transitions.updated(self._draft.status, found.update), found.announcement)
        return None

    async def _abandon(self) -> Result | None:
        """Take back what has not landed; what has goes on to its end."""
        reason, message = given_up(self._stopped, self._successor, self._step.spec.pipeline)
        context = self._context(len(self._sequence) - 1, self._sequence)
        landed = await self._caught(withdraw(context, message), name="superseded")
        if isinstance(landed, Failure):
            return await self._retry(landed, name="superseded")
        if isinstance(landed, Waiting):
            return await self._wait(landed)
        if landed:
            self._superseded = False
            return None
        self._draft.move(transitions.withdrawn(self._draft.status))
        return await self._fail(reason, message)

    async def _caught(self, action: Awaitable[T], *, name: str) -> T | Waiting | Failure:
        """Await an action of a step; whatever goes wrong in it is a failed attempt."""
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
            index = current_index(self._draft.status, [step.declaration for step in self._sequence])
            self._draft.move(transitions.located(self._draft.status, index, waiting.location))
        before = transitions.updated(self._draft.status, waiting.update)
        if waiting.held:
            message = "; ".join(self._holds()) or waiting.message
            return await self._pause(transitions.held(before, message, now=now), wait)
        if waiting.blocked:
            reason = transitions.BLOCKED
            return await self._pause(transitions.held(before, waiting.message, now=now, reason=reason), wait)
        status = transitions.waiting(before, waiting.message, now=now)
        if status != self._draft.written:
            nothing_else = before == self._draft.written
            if nothing_else and (delay := self._tools.progress.delay(self._key, urgent=waiting.needs_person)):
                return Result(requeue_after=min(delay, wait) if wait is not None else delay)
            self._tools.progress.note(self._key, urgent=waiting.needs_person)
        return await self._pause(status, wait)

    async def _retry(self, failure: Failure, *, name: str, deadline: datetime | None = None) -> Result:
        """Repeat what another attempt may do, at the deadline at the latest; anything else ends the promotion."""
        message, now = f"{name}: {failure.message}", self._tools.clock.now()
        wait = again(self._draft.status, failure, message, now=now, backoff=self._tools.backoff, deadline=deadline)
        if wait is None:
            return await self._fail(failure.reason, message)
        secret = self._step.spec.git.secret_ref
        if failure.blocked and secret is not None:
            self._tools.credentials.wait(self._key, Key(self._key.namespace, secret.name))
        return await self._pause(wait.status, wait.delay)

    async def _fail(self, reason: str, message: str) -> Result:
        begun = self._draft.status.started_at is not None
        evidence = self._evidence() if begun else None
        if self._sequence:
            await tell_failure(self._context(len(self._sequence) - 1, self._sequence), message)
        status = transitions.failed(self._draft.status, message, evidence, now=self._tools.clock.now())
        await self._draft.save(status, reason=reason)
        return self._rest()

    async def _verify(self) -> Result:
        """Write the proof down before the verdict, as after every effect."""
        await self._draft.write()
        status, message = self._draft.status, self._proof.message if self._proof else ""
        await self._draft.save(transitions.verified(status, message, self._evidence(), now=self._tools.clock.now()))
        return self._rest()

    def _evidence(self) -> Evidence:
        """Return what the promotion can show for itself if it ends now."""
        return evidence_of(
            self._step,
            self._bundle,
            self._draft.status,
            self._sequence,
            gates=self._gates.results(),
            gate_duration=self._gates.duration(),
            now=self._tools.clock.now(),
        )

    def _account_for_landing(self) -> None:
        """Tell of a change that no status says any more. There is no Event: the namespace may be on its way out."""
        commit, changed = self._draft.untold_landing(), facts_of(self._draft.status, self._sequence).changed
        if commit is not None and changed is not False:
            branch, event = self._step.spec.target_branch, "a change has landed whose promotion was deleted meanwhile"
            log.warning(event, promotion=str(self._key), branch=branch, commit=commit)

    def _rest(self) -> Result:
        self._tools.merges.release(self._key)
        self._tools.health.release(self._key)
        self._tools.progress.forget(self._key)
        self._tools.credentials.forget(self._key)
        self._tools.host_memory.forget(self._key)
        return Result()

    async def _pause(self, status: PromotionStepStatus, wait: timedelta | None = None) -> Result:
        """End the run here, for `wait` at most."""
        await self._draft.save(status)
        return Result(requeue_after=wait)
