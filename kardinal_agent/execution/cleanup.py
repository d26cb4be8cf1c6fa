"""Withdraw the proposal of a promotion that is deleted, has ended, or begins another attempt.

When a PromotionStep is deleted, its Graph and its Bundle may be gone already, so only its status is read, which only
programs write: it has the branch and the UID of the Bundle. A PromotionStep without this note has no effect on any
host, whatever its spec contains.

A pull request that is open when another attempt begins is kept with its approvals, and the attempt continues with it. A
host that refuses a withdrawal delays the deletion by `WITHDRAWN_WITHIN` at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

import structlog
from pydantic import ValidationError

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.names import FINALIZER
from kardinal.promotion.api.promotion_step import Proposal
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.runtime import Backoff, KeyMemory, Result
from kardinal.runtime.finalizers import Patience, has_finalizer, is_being_deleted, remove_finalizer
from kardinal.scm import PullRequestError
from kardinal.tree.git_names import PROPOSALS
from kardinal_agent.errors import Failure, classified
from kardinal_agent.metrics import AgentMetrics, Figure
from kardinal_agent.remotes import Queued, Remote, Remotes
from kardinal_agent.steps.pull_requests import OUTCOME
from kardinal_agent.steps.withdrawal import close_proposal, find_proposal, is_of_others, remove_branch

__all__ = ["WITHDRAWN_WITHIN", "Cleanup"]

WITHDRAWN_WITHIN = timedelta(minutes=10)
"""The longest time for which a host may delay a deletion."""

ATTEMPT_DEADLINE = 90.0
"""Seconds of real time that one try of a withdrawal may take."""

LEFT_AFTER = 5
"""The number of failures after which the branch of an ended promotion is left until its PromotionStep is deleted."""

TURN = timedelta(seconds=5)
"""The time after which a busy host is tried again."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Cleanup:
    """Withdraws proposals, and removes the finalizer from PromotionSteps without a proposal."""

    def __init__(
        self,
        client: Client,
        *,
        remotes: Remotes,
        metrics: AgentMetrics,
        clock: Clock,
        backoff: Backoff,
        memory: KeyMemory,
    ) -> None:
        self._client = client
        self._remotes = remotes
        self._metrics = metrics
        self._backoff = backoff
        self._failures: dict[Key, int] = memory.map()
        self._patience = Patience(WITHDRAWN_WITHIN, clock=clock, memory=memory)

    async def run(self, raw: JsonObject) -> Result:
        """Withdraw the proposal of a promotion that is being deleted or has ended."""
        if not has_finalizer(raw, FINALIZER):
            self._failures.pop(key_of(raw), None)
            return Result()
        step = _readable(raw)
        if step is None or not _is_noted(step):
            return await self._release(raw)
        if is_being_deleted(raw):
            return await self._before_deletion(raw, step)
        if step.status.state == "Failed" and step.status.promoted_at is None:
            # A person may still merge what is proposed; it is withdrawn with the promotion, or for another attempt.
            return Result()
        return await self._after_the_end(raw, step)

    async def before_attempt(self, raw: JsonObject, step: PromotionStep) -> Result | Proposal | None:
        """Withdraw the proposal of the attempt before, or return it if the new attempt continues with it.

        A `Result` has the time of the next try; with any other value the attempt may begin.
        """
        if step.spec.attempt == step.status.attempt or not has_finalizer(raw, FINALIZER) or not _is_noted(step):
            return None
        key = key_of(raw)
        outcome = await self._attempt(step, partial(_keep_or_withdraw, step))
        if isinstance(outcome, Failure) and outcome.transient:
            return Result(requeue_after=self._delay(key, outcome))
        self._failures.pop(key, None)
        return None if isinstance(outcome, Failure) else outcome

    async def _before_deletion(self, raw: JsonObject, step: PromotionStep) -> Result:
        within = self._patience.left(raw).total_seconds()
        comment = f"The promotion of {_what(step)} was deleted."
        failure = await self._attempt(step, partial(_withdraw, step, comment=comment), within=within)
        if failure is None:
            return await self._release(raw)
        left = self._patience.left(raw)
        if left and not (failure.reason in _WITHOUT_SECRET and self._remotes.is_leaving(step)):
            return Result(requeue_after=min(self._delay(key_of(raw), failure), left))
        self._abandon(step, failure)
        return await self._release(raw)

    async def _after_the_end(self, raw: JsonObject, step: PromotionStep) -> Result:
        failure = await self._attempt(step, partial(_withdraw, step, comment=""))
        if failure is None:
            return await self._release(raw)
        key = key_of(raw)
        delay = self._delay(key, failure)
        return Result(requeue_after=delay if self._failures[key] < LEFT_AFTER else None)

    async def _attempt(
        self, step: PromotionStep, action: Callable[[Remote], Awaitable[T]], *, within: float = ATTEMPT_DEADLINE
    ) -> T | Failure:
        """Try an action on the proposal once; return its result, or the failure."""
        try:
            async with asyncio.timeout(min(max(within, 1.0), ATTEMPT_DEADLINE)):
                remote = await self._remotes.open(step, withdrawing=True)
                try:
                    return await action(remote)
                finally:
                    remote.release()
        except Queued as queued:
            return Failure("Queued", queued.message, transient=True, retry_after=TURN.total_seconds())
        except Exception as error:
            failure = classified(error)
            if not failure.known:
                log.error("a proposal could not be withdrawn, by a bug", exc_info=error)
            return failure

    def _delay(self, key: Key, failure: Failure) -> timedelta:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return timedelta(seconds=max(self._backoff.delay(failures), failure.retry_after or 0.0))

    def _abandon(self, step: PromotionStep, failure: Failure) -> None:
        """Log that a proposal is left behind. No Event is written, because the namespace may be being deleted."""
        namespace = step.metadata.namespace
        status = step.status
        log.warning(
            "a proposal is left behind",
            promotion=f"{namespace}/{step.metadata.name}",
            branch=status.proposal.branch if status.proposal else None,
            pull_request=status.pr_url,
            error=failure.message,
        )
        self._metrics.promotion(Figure("abandoned", (step.spec.environment,)), namespace=namespace)

    async def _release(self, raw: JsonObject) -> Result:
        await remove_finalizer(self._client, PROMOTION_STEP, raw, FINALIZER)
        self._failures.pop(key_of(raw), None)
        return Result()


_WITHOUT_SECRET = frozenset(["SecretNotFound", "SecretUnreadable"])


def _readable(raw: JsonObject) -> PromotionStep | None:
    """Return the PromotionStep; None if it cannot be read, because then it was never executed."""
    try:
        return PromotionStep.model_validate(raw)
    except ValidationError:
        return None


def _is_noted(step: PromotionStep) -> bool:
    """Return whether the status names the branch of a proposal, with the prefix that no environment may have."""
    return step.status.proposal is not None and step.status.proposal.branch.startswith(PROPOSALS)


def _what(step: PromotionStep) -> str:
    return f"Bundle {step.spec.bundle_ref} to {step.spec.environment}"


async def _keep_or_withdraw(step: PromotionStep, remote: Remote) -> Proposal | None:
    """Return the proposal if it is open and has the base of the promotion; withdraw any other proposal."""
    proposal = step.status.proposal
    assert proposal is not None  # noqa: S101 - `_is_noted`
    if remote.pull_requests is not None and not await is_of_others(remote.repository, step, proposal):
        found = await find_proposal(step, proposal, remote.proposals)
        if found is not None and found.state == "open" and found.base == step.spec.target_branch:
            comment = f"Another attempt to promote {_what(step)} goes on with this pull request."
            try:
                await remote.proposals.comment(found.number, comment, marker=OUTCOME)
            except PullRequestError as error:
                if error.transient:
                    raise
                log.warning("a pull request was not told of another attempt", pull_request=found.url, error=str(error))
            return proposal
    await _withdraw(step, remote, comment=f"Another attempt to promote {_what(step)} begins.")
    return None


async def _withdraw(step: PromotionStep, remote: Remote, *, comment: str) -> None:
    """Close the pull request with `comment`, unless that is empty, and remove the branch."""
    proposal = step.status.proposal
    assert proposal is not None  # noqa: S101 - `_is_noted`
    repository = remote.repository
    if comment:
        if await is_of_others(repository, step, proposal):
            return
    elif await remove_branch(repository, step, proposal):
        return
    found = await find_proposal(step, proposal, remote.proposals)
    if comment and found is not None:
        found = await close_proposal(remote.proposals, found, comment)
    await remove_branch(repository, step, proposal, merged=found)
