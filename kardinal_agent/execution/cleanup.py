"""Withdrawing the proposal of a promotion that is deleted, has ended, or starts over.

When a PromotionStep goes, its Graph and its Bundle may be gone already. So nothing is asked of them: the status, which
only programs write, has the branch and the UID of the Bundle, and the branch is ours only if its commit carries that
UID and the name of this PromotionStep. A step without the note has no effect on any host, whatever its spec says.

A pull request that is open is closed with a comment, and the branch removed unless others have committed to it. One
that is open when another attempt begins is kept, with its approvals: the attempt goes on with it. A host that does not
let a withdrawal happen holds the deletion for `PATIENCE` at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TypeVar

import structlog
from pydantic import ValidationError

from kardinal.api import PROMOTION_STEP, PromotionStep
from kardinal.api.names import FINALIZER, PROPOSALS, TRAILER_STEP, TRAILER_UID
from kardinal.api.promotion_step import Proposal
from kardinal.git import BranchNotFound, Repository
from kardinal.git.discarding import OwnCommit
from kardinal.kube import Client
from kardinal.objects import JsonObject, Key, key_of
from kardinal.runtime import Backoff, Clock, Result
from kardinal.runtime.finalizers import Patience, has_finalizer, is_being_deleted, remove_finalizer
from kardinal.scm import PullRequest, PullRequestEnded, PullRequestError, PullRequestNotFound, PullRequests
from kardinal.steps.commit_plan import committer_of
from kardinal_agent.errors import Failure, classified
from kardinal_agent.execution.withdrawal import OUTCOME
from kardinal_agent.metrics import AgentMetrics, Figure
from kardinal_agent.remotes import Queued, Remote, Remotes
from kardinal_agent.steps.pull_requests import AGENT, is_of_bundle
from kardinal_agent.steps.text_marks import without_owner

__all__ = ["PATIENCE", "Cleanup"]

PATIENCE = timedelta(minutes=10)
"""How long a host may hold a deletion."""

ATTEMPT_DEADLINE = 90.0
"""Seconds of real time that one attempt may take."""

LEFT_AFTER = 5
"""Failures after which the branch of a promotion that has ended is left for its deletion."""

TURN = timedelta(seconds=5)
"""How soon to look again for a turn at a busy host."""

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Cleanup:
    """Withdraws proposals, and takes the finalizer off PromotionSteps that have none."""

    def __init__(
        self, client: Client, *, remotes: Remotes, metrics: AgentMetrics, clock: Clock, backoff: Backoff
    ) -> None:
        self._client = client
        self._remotes = remotes
        self._metrics = metrics
        self._backoff = backoff
        self._failures: dict[Key, int] = {}
        self._patience = Patience(PATIENCE, clock=clock)

    def forget(self, key: Key) -> None:
        """Forget a promotion that is gone."""
        self._failures.pop(key, None)
        self._patience.forget(key)

    async def run(self, raw: JsonObject) -> Result:
        """Do what is left for a promotion that is being deleted or has ended."""
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
        """Withdraw what an earlier attempt has left, or return the proposal with which another one goes on.

        A `Result` says when to look again; anything else, that the attempt may begin.
        """
        if step.spec.attempt == step.status.attempt or not has_finalizer(raw, FINALIZER) or not _is_noted(step):
            return None
        key, outcome = key_of(raw), await self._attempt(step, partial(_keep_or_withdraw, step))
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
        """Do something about the proposal once; return its result, or why it could not be done."""
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
        """Say that a proposal is left behind. There is no Event: the namespace may be on its way out."""
        namespace, status = step.metadata.namespace, step.status
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
        self.forget(key_of(raw))
        return Result()


_WITHOUT_SECRET = frozenset(["SecretNotFound", "SecretUnreadable"])


def _readable(raw: JsonObject) -> PromotionStep | None:
    """Return the step; None for one that was never executed, because it cannot be read."""
    try:
        return PromotionStep.model_validate(raw)
    except ValidationError:
        return None


def _is_noted(step: PromotionStep) -> bool:
    """Return whether the agent has noted a branch, below the prefix that no environment may have."""
    return step.status.proposal is not None and step.status.proposal.branch.startswith(PROPOSALS)


def _what(step: PromotionStep) -> str:
    return f"Bundle {step.spec.bundle_ref} to {step.spec.environment}"


def _own_commit(step: PromotionStep, proposal: Proposal) -> OwnCommit:
    name = f"{step.metadata.namespace}/{step.metadata.name}"
    return OwnCommit(trailers={TRAILER_STEP: name, TRAILER_UID: proposal.bundle_uid}, committer=committer_of(step))


async def _keep_or_withdraw(step: PromotionStep, remote: Remote) -> Proposal | None:
    """Return the proposal if it is open and to be merged where the promotion wants it; withdraw any other."""
    proposal = step.status.proposal
    assert proposal is not None  # noqa: S101 - `_is_noted`
    own = _own_commit(step, proposal)
    if remote.pull_requests is not None and not await _is_of_others(remote.repository, proposal.branch, own):
        found = await _pull_request(step, remote.proposals)
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
    proposal, base = step.status.proposal, step.spec.target_branch
    assert proposal is not None  # noqa: S101 - `_is_noted`
    own = _own_commit(step, proposal)
    repository, found = remote.repository, None
    if comment:
        if await _is_of_others(repository, proposal.branch, own):
            return
        found = await _pull_request(step, remote.proposals)
        if found is not None and found.state == "open":
            found = await _close(remote.proposals, found, comment)
    elif await repository.discard(proposal.branch, base=base, own=own):
        return
    else:
        found = await _pull_request(step, remote.proposals)
    merged = found.head_commit if found is not None and found.state == "merged" else None
    await repository.discard(proposal.branch, base=base, own=replace(own, merged=merged))


async def _is_of_others(repository: Repository, branch: str, own: OwnCommit) -> bool:
    """Return whether the branch is there without a commit of this promotion: the note of it was forged."""
    try:
        return await repository.find(branch, own.trailers) is None
    except BranchNotFound:
        return False


async def _pull_request(step: PromotionStep, pull_requests: PullRequests) -> PullRequest | None:
    """Return the pull request of the branch, unless another Bundle of the name has made it."""
    noted, proposal = step.status.pull_request, step.status.proposal
    assert proposal is not None  # noqa: S101 - `_is_noted`
    found: PullRequest | None = None
    if noted is not None:
        try:
            found = await pull_requests.get(noted.number)
        except PullRequestNotFound:
            found = None
    if found is None:
        found = await pull_requests.find(proposal.branch, base=step.spec.target_branch)
    if found is None or found.head != proposal.branch or not is_of_bundle(found, proposal.bundle_uid):
        return None
    return found


async def _close(pull_requests: PullRequests, found: PullRequest, comment: str) -> PullRequest:
    """Close a pull request; a person may merge it at the same moment, and wins."""
    try:
        await pull_requests.update(found.number, body=without_owner(found.body))
        return await pull_requests.close(found.number, by=AGENT, comment=comment)
    except PullRequestEnded:
        return await pull_requests.get(found.number)
