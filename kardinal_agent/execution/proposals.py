"""The proposal of a promotion: noted before it is created, withdrawn with a superseded Bundle, told of a failure.

A PromotionStep gets its finalizer first, then its status gets the branch, and only then is anything pushed: a process
that is killed in between leaves a note without a branch, never a branch without a note.

The pull request of a failed promotion stays open, because `kardinal retry` continues with it; a comment and the
statuses say that a merge alone does not continue the promotion.
"""

from __future__ import annotations

import asyncio

import structlog

from kardinal.kube import Client
from kardinal.promotion.api.names import FINALIZER
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.promotion.steps.declaration import Role
from kardinal.promotion.steps.markdown import cell
from kardinal.runtime.finalizers import add_finalizer, is_being_deleted
from kardinal.scm import PullRequest, PullRequestError
from kardinal_agent.errors import classified
from kardinal_agent.execution.draft import StatusDraft, StepDeleted
from kardinal_agent.remotes import Queued, Remote
from kardinal_agent.steps import StepContext
from kardinal_agent.steps.pull_requests import OUTCOME, tell_gates
from kardinal_agent.steps.withdrawal import close_proposal, find_proposal, remove_branch

__all__ = ["Proposals", "take_back", "tell_failure"]

_DEADLINE = 10.0
"""Seconds of real time that a host has to accept the comment about a failure."""

_CONCERNED = frozenset([Role.PUSH, Role.PROPOSE, Role.AWAIT, Role.MERGE])


log = structlog.get_logger(__name__)


class Proposals:
    """Prepares PromotionSteps for effects at a host: adds the finalizer, and notes the branch in the draft."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def note(self, draft: StatusDraft, context: StepContext) -> None:
        """Add the finalizer, and put the branch into the draft: there may be a proposal after the next effect.

        The draft must be written before that effect. Raises `StepDeleted`.
        """
        if not context.proposes or context.planned.declaration.role not in _CONCERNED:
            return
        obj = await add_finalizer(self._client, PROMOTION_STEP, draft.object, FINALIZER)
        if obj is None:
            raise StepDeleted
        draft.object = obj
        if draft.status.proposal is None:
            draft.move(draft.status.model_copy(update={"proposal": context.proposal}))

    def check(self, draft: StatusDraft) -> None:
        """Raise `StepDeleted` if the PromotionStep that the last write has returned is being deleted."""
        if is_being_deleted(draft.object):
            raise StepDeleted


async def take_back(context: StepContext, reason: str) -> bool:
    """Return whether the change has landed; if not, withdraw its proposal, so that nothing is left to be merged.

    The repository is asked, because the process may have died between landing and noting it. `reason` is in the
    comment on the pull request.
    """
    remote = await context.remote()
    if await remote.repository.find(context.target, context.message.trailers) is not None:
        return True
    if not context.proposes:
        return False
    step = context.step.model_copy(update={"status": context.status})
    found = await find_proposal(step, context.proposal, remote.proposals)
    if found is not None:
        why = f"Bundle {context.bundle.metadata.name} is {reason}"
        found = await close_proposal(remote.proposals, found, f"{why}.")
        if found.state == "merged":
            return True
        await _take_success_back(context, remote, found, why)
    await remove_branch(remote.repository, step, context.proposal)
    return False


async def _take_success_back(context: StepContext, remote: Remote, found: PullRequest, why: str) -> None:
    """Set the statuses of a closed pull request to `pending`, because a person could reopen it."""
    if not remote.capabilities.statuses or found.head_commit is None:
        return
    try:
        await tell_gates(context, remote, found.head_commit, [why])
    except PullRequestError as error:
        if error.transient:
            raise
        log.warning("a commit keeps its statuses", pull_request=found.url, error=str(error))


async def tell_failure(context: StepContext, message: str) -> None:
    """Comment on a pull request that is still open that its promotion has failed, with the `message` of the failure.

    A host that does not answer in time gets no comment.
    """
    noted = context.status.pull_request
    if noted is None or context.status.promoted_at is not None:
        return
    try:
        async with asyncio.timeout(_DEADLINE):
            await _tell_failure(context, noted.number, message)
    except Queued as queued:
        log.warning("a pull request was not told of a failure", pull_request=noted.url, error=queued.message)
    except Exception as error:
        log.warning("a pull request was not told of a failure", pull_request=noted.url, error=classified(error).message)


async def _tell_failure(context: StepContext, number: int, message: str) -> None:
    remote = await context.remote()
    spec = context.step.spec
    found = await remote.proposals.get(number)
    if found.state != "open":
        return
    bundle = context.bundle.metadata.name
    await remote.proposals.comment(
        number,
        f"The promotion of Bundle {bundle} to {spec.environment} has failed: {cell(message)}\n\n"
        "Merging this pull request changes the environment, and no promotion goes on from it any more. "
        f"`kardinal retry {bundle} --env {spec.environment}` goes on with it; else close it.",
        marker=OUTCOME,
    )
    if remote.capabilities.statuses and found.head_commit is not None:
        await tell_gates(context, remote, found.head_commit, [f"the promotion has failed: {message}"])
