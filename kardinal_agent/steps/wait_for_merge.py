"""`wait-for-merge` and `merge-pr`: wait until a person has merged the pull request, or merge it when it is not held.

After each notification the host is asked for the state of the pull request; the notification itself is not believed. A
pull request that a person closed without a merge ends the promotion. After a merge while a gate was closed the
promotion goes on, because nothing is reverted, and gets a flag. The same happens if the commit, recognised by its
trailers, reached the base by a push.

A host may demand that a proposal is up to date with its base before a merge. Each update starts the checks of the host
again, and each merge puts the other proposals behind the base again. So one proposal has its turn and time to be merged
before the next one is updated: a dozen proposals cost a dozen runs of the checks instead of a hundred. The host makes
the update, by merge or rebase, because then it knows which approvals still count.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from kardinal.git import GitError, MergeConflict
from kardinal.promotion.steps.pull_request_text import waiting_message
from kardinal.scm import BehindBase, MergeBlocked, PullRequest
from kardinal_agent.errors import StepFailed
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.approvers import approvers, closer
from kardinal_agent.steps.base import Announcement, Done, Flag, StepContext, StepResult, Waiting, WaitKind
from kardinal_agent.steps.pull_requests import AGENT
from kardinal_agent.steps.upkeep import Kept, keep
from kardinal_agent.steps.withdrawal import close_proposal, remove_branch

__all__ = ["MERGED_OUT_OF_BAND", "WaitForMerge"]

MERGED_OUT_OF_BAND = "MergedOutOfBand"
"""The condition of a promotion that was merged while a gate was closed, and the reason of its Event."""

_SHOWN = timedelta(seconds=5)
"""The time that a host may take between moving the base and showing the pull request as merged."""


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
    """Return whether a merge by kardinal was interrupted: provider `local` moves the base before it notes the merge."""
    return found.state == "open" and context.merges_itself and remote.capabilities.local


async def _look(context: StepContext, remote: Remote, kept: Kept) -> PullRequest | Waiting:
    """Return the pull request if it has ended, merged by kardinal or by others; otherwise the reason to wait."""
    found = kept.found
    if found.state != "open":
        return found
    if kept.blocked or context.holds():
        context.host_memory.forget_merge(context.key)
        context.host_memory.end_turn(context.key)
        return _waiting(context, remote, kept)
    if _is_behind(kept):
        return await _bring_up_to_date(context, remote, kept)
    if context.merges_itself:
        try:
            found = await _merge(context, remote, kept)
        except BehindBase:
            return await _bring_up_to_date(context, remote, kept)
        except MergeBlocked as error:
            return _put_off(context, remote, kept, error)
    return found if found.state != "open" else _waiting(context, remote, kept)


def _waiting(context: StepContext, remote: Remote, kept: Kept) -> Waiting:
    again = kept.again
    if kept.found.behind is None:
        # The host compares the branches in the background, and sends no delivery about the result.
        again = context.host_memory.merge_delay(context.key)
    elif not context.merges_itself:
        context.host_memory.forget_merge(context.key)
    message = kept.blocked or waiting_message(kept.found.url)
    kind = WaitKind.BLOCKED if kept.blocked else WaitKind.STEP
    if holds := context.holds():
        message = "; ".join(holds)
        kind = WaitKind.HELD
    return Waiting(
        message,
        until=context.now + again if again else None,
        kind=kind,
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )


def _put_off(context: StepContext, remote: Remote, kept: Kept, blocked: MergeBlocked) -> Waiting:
    """Wait for the host's condition for a merge: a status, a review, its queue.

    It is not a failure and no attempt counts; a gate that closes meanwhile is reported to the host at once.
    """
    delay = max(context.host_memory.merge_delay(context.key), timedelta(seconds=blocked.retry_after or 0.0))
    again = min(delay, kept.again) if kept.again else delay
    return Waiting(
        str(blocked),
        until=context.now + again,
        kind=WaitKind.BLOCKED if blocked.blocked else WaitKind.STEP,
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )


async def _merge(context: StepContext, remote: Remote, kept: Kept) -> PullRequest:
    """Merge the proposed commit, and no commit that was added to the branch meanwhile."""
    try:
        return await remote.proposals.merge(
            kept.found.number,
            by=AGENT,
            method=context.step.spec.git.merge_method,
            expected_head=kept.head,
            message=context.message,
        )
    except MergeConflict as error:
        # The base has moved since the proposal was brought up to date; the next try does that again.
        error.transient = True
        raise


async def _pushed(found: PullRequest, commit: str, context: StepContext, remote: Remote) -> StepResult:
    """Go on with a commit that reached the base by a push; its pull request is closed, with nothing left to merge."""
    where = f"{commit[:12]} is on {context.target}"
    if found.state == "open":
        if context.progress is None or context.progress.location != commit:
            message = f"{where}: looks whether {found.url} is shown as merged"
            again = context.now + _SHOWN
            return Waiting(message, until=again, subscribe=remote.proposals.subscribe, location=commit)
        found = await close_proposal(remote.proposals, found, f"{where} already, so nothing is left to merge.")
        if found.state == "merged":
            return await _merged(found, context, remote)
    # The change has landed, so a failure to delete the branch does not matter.
    with suppress(GitError):
        await remove_branch(remote.repository, context.step, context.proposal)
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
    """Return the flag of a merge that did not wait for its gates; None if no gate was closed."""
    reasons = "; ".join(context.holds())
    condition = context.status.condition("Held")
    if not reasons and condition is not None and condition.status == "False" and found.merged_at is not None:
        # The hold has ended since, but after the merge.
        reasons = "it was held at the time" if condition.last_transition_time > found.merged_at else ""
    if not reasons:
        return None
    by = found.merged_by or "an unknown user"
    return Flag(MERGED_OUT_OF_BAND, f"{found.url} was merged by {by} although {reasons}")


def _is_behind(kept: Kept) -> bool:
    """Return whether the host reports that the proposed commit lacks commits of the base."""
    return bool(kept.found.behind) and kept.head == kept.found.head_commit


async def _bring_up_to_date(context: StepContext, remote: Remote, kept: Kept) -> Waiting:
    """Ask the host for the update if this proposal has its turn, and wait for the result."""
    found = kept.found
    memory = context.host_memory
    if memory.take_turn((remote.repository.url, found.base), context.key):
        said = "it is being brought up to date"
        try:
            await remote.proposals.bring_up_to_date(found.number, expected_head=kept.head)
        except MergeConflict as error:
            # The base has moved since the proposal was compared with it; the next try compares them again.
            error.transient = True
            raise
        except MergeBlocked as error:
            said = str(error)
    else:
        said = "another one is brought up to date and merged first"
    delay = memory.merge_delay(context.key)
    return Waiting(
        f"{found.url} is behind {found.base}, and the host merges it only up to date: {said}",
        until=context.now + min(delay, kept.again or timedelta.max),
        subscribe=remote.proposals.subscribe,
        update=kept.update,
    )
