"""`wait-for-merge` and `merge-pr`: wait until a person has merged the pull request, or merge it when nothing holds it.

Every notification is followed by a question to the provider before anything is believed. A pull request that was closed
without a merge is a decision of a person: it ends the promotion. One that was merged while a gate was closed goes on,
because nothing is reverted, and is flagged. So does one whose commit reached the base by a push: the trailers say so.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from kardinal.git import GitError, MergeConflict
from kardinal.git.discarding import OwnCommit
from kardinal.scm import BehindBase, MergeBlocked, PullRequest, PullRequestEnded
from kardinal.steps.pull_request_text import waiting_message
from kardinal_agent.errors import StepFailed
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.approvers import approvers, closer
from kardinal_agent.steps.base import Announcement, Done, Flag, StepContext, StepResult, Waiting
from kardinal_agent.steps.pull_requests import AGENT
from kardinal_agent.steps.up_to_date import bring_up_to_date, is_behind
from kardinal_agent.steps.upkeep import Kept, keep

__all__ = ["MERGED_OUT_OF_BAND", "WaitForMerge"]

MERGED_OUT_OF_BAND = "MergedOutOfBand"
"""The condition, and the reason of the Event, of a promotion that was merged while a gate was closed."""

_SHOWN = timedelta(seconds=5)
"""A host moves the base a moment before it shows the pull request as merged."""


class WaitForMerge:
    async def run(self, context: StepContext) -> StepResult:
        noted = context.status.pull_request
        if noted is None:
            return Done("no pull request to wait for")
        remote = await context.remote()
        found = await remote.proposals.get(noted.number)
        if found.state != "merged":
            commit = await remote.repository.find(context.target, context.message.trailers)
            if commit is not None:
                found = await remote.proposals.get(noted.number)  # it may have been merged since it was looked at
                if found.state != "merged" and not _is_merging(context, remote, found):
                    return await _pushed(found, commit, context, remote)
        if found.state == "open":
            kept = await keep(context, remote, found)
            looked = await _look(context, remote, kept)
            if isinstance(looked, Waiting):
                return looked
            found = looked
        context.host_memory.end_turn(context.key)
        if found.state == "closed":
            by = await closer(remote, found.number) or "an unknown user"
            raise StepFailed("PullRequestClosed", f"pull request {noted.url} was closed by {by} without being merged")
        if found.base != context.target:
            raise StepFailed(
                "MergedElsewhere",
                f"pull request {noted.url} was merged into {found.base} and not into {context.target}: promote again",
            )
        return await _merged(found, context, remote)


def _is_merging(context: StepContext, remote: Remote, found: PullRequest) -> bool:
    """Return whether a merge of kardinal's own was cut short: provider `local` moves the base before it notes it."""
    return found.state == "open" and context.merges_itself and remote.capabilities.local


async def _look(context: StepContext, remote: Remote, kept: Kept) -> PullRequest | Waiting:
    """Return the pull request if it has ended by now, merged by kardinal or by others; else what it waits for."""
    found = kept.found
    if found.state != "open":
        return found
    if kept.blocked or context.holds():
        context.host_memory.forget_merge(context.key)
        context.host_memory.end_turn(context.key)
        return _waiting(context, remote, kept)
    if is_behind(kept):
        return await bring_up_to_date(context, remote, kept)
    if context.merges_itself:
        try:
            found = await _merge(context, remote, kept)
        except BehindBase:
            return await bring_up_to_date(context, remote, kept)
        except MergeBlocked as error:
            return _put_off(context, remote, kept, error)
    return found if found.state != "open" else _waiting(context, remote, kept)


def _waiting(context: StepContext, remote: Remote, kept: Kept) -> Waiting:
    again = kept.again
    if kept.found.behind is None:
        # The host compares the branches in the background, and calls back with nothing.
        again = context.host_memory.merge_delay(context.key)
    elif not context.merges_itself:
        context.host_memory.forget_merge(context.key)
    return Waiting(
        kept.blocked or waiting_message(kept.found.url),
        until=context.now + again if again else None,
        held=bool(context.holds()),
        blocked=bool(kept.blocked),
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )


def _put_off(context: StepContext, remote: Remote, kept: Kept, blocked: MergeBlocked) -> Waiting:
    """Wait for what the host wants before it merges: a status, a review, its queue.

    It is no failure: nothing is to be retried, and a gate that closes meanwhile is told to the host at once.
    """
    delay = max(context.host_memory.merge_delay(context.key), timedelta(seconds=blocked.retry_after or 0.0))
    again = min(delay, kept.again) if kept.again else delay
    return Waiting(
        str(blocked),
        until=context.now + again,
        blocked=blocked.blocked,
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )


async def _merge(context: StepContext, remote: Remote, kept: Kept) -> PullRequest:
    """Merge what was proposed, and nothing that came on top of it meanwhile."""
    try:
        return await remote.proposals.merge(
            kept.found.number,
            by=AGENT,
            method=context.step.spec.git.merge_method,
            expected_head=kept.head,
            message=context.message,
        )
    except MergeConflict as error:
        # The base has moved since the proposal was brought up to it: the next attempt does that again.
        error.transient = True
        raise


async def _pushed(found: PullRequest, commit: str, context: StepContext, remote: Remote) -> StepResult:
    """Go on with a commit that is on the base without a merge of its pull request, which has nothing left to merge."""
    where = f"{commit[:12]} is on {context.target}"
    if found.state == "open":
        if context.progress is None or context.progress.location != commit:
            message = f"{where}: looks whether {found.url} is shown as merged"
            again = context.now + _SHOWN
            return Waiting(message, until=again, subscribe=remote.proposals.subscribe, location=commit)
        try:
            await remote.proposals.close(
                found.number, by=AGENT, comment=f"{where} already, so nothing is left to merge."
            )
        except PullRequestEnded:
            found = await remote.proposals.get(found.number)
            if found.state == "merged":
                return await _merged(found, context, remote)
    own = OwnCommit(context.message.trailers, context.message.committer)
    # It has landed whatever becomes of its branch.
    with suppress(GitError):
        await remote.repository.discard(context.branch, base=context.target, own=own)
    reasons = "; ".join(context.holds())
    flag = Flag(MERGED_OUT_OF_BAND, f"{where}, pushed to {context.target} although {reasons}") if reasons else None
    return Done(
        f"{where} without a merge of pull request {found.number}",
        outputs=await approvers(context, remote, found.number),
        update={"merged_at": context.now, "promoted_at": context.now, "commit": commit},
        announcement=Announcement(MERGED_OUT_OF_BAND, flag.message, warning=True) if flag else None,
        flag=flag,
    )


async def _merged(found: PullRequest, context: StepContext, remote: Remote) -> Done:
    by = found.merged_by or "an unknown user"
    landed_at = found.merged_at or context.now
    commit = found.merge_commit or await remote.repository.find(context.target, context.message.trailers)
    flag = _flag(found, context)
    return Done(
        f"pull request {found.number} was merged by {by}",
        outputs={"mergedBy": by, **await approvers(context, remote, found.number)},
        update={"merged_at": landed_at, "promoted_at": landed_at, "commit": commit or context.status.commit},
        announcement=Announcement(MERGED_OUT_OF_BAND, flag.message, warning=True) if flag else None,
        flag=flag,
    )


def _flag(found: PullRequest, context: StepContext) -> Flag | None:
    """Return what is wrong with a merge that did not wait for its gates; None where nothing is."""
    reasons = "; ".join(context.holds())
    condition = context.status.condition("Held")
    if not reasons and condition is not None and condition.status == "False" and found.merged_at is not None:
        # Released since, but after the merge.
        reasons = "it was held at the time" if condition.last_transition_time > found.merged_at else ""
    if not reasons:
        return None
    by = found.merged_by or "an unknown user"
    return Flag(MERGED_OUT_OF_BAND, f"{found.url} was merged by {by} although {reasons}")
