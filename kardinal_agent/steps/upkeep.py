"""Update an open pull request while it waits: its branch, its commit statuses, and its text; a draft, too.

If the files of a proposal have changed on the base, the proposal is made again, as long as only kardinal has written to
its branch. Commits of others are never overwritten: if they conflict with the base, the promotion is held, with the
names of the files. While a freeze or a gate holds the promotion, nothing is pushed, and statuses and text say so at
once.

The gates have answered for the commit that kardinal proposed, and for its base. So no other head gets `success`, and
none with another base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.git import PushRejected
from kardinal.scm import PullRequest
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StatusFields, StepContext
from kardinal_agent.steps.pull_requests import tell_gates, text_of
from kardinal_agent.steps.withdrawal import remove_branch

__all__ = ["Kept", "keep"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A pull request after the upkeep: its proposed commit, and the obstacles to a merge.

    `unasked`: why the answers of the gates do not apply to this head. `again`: the time until the rest of the upkeep.
    """

    found: PullRequest
    head: str | None
    update: StatusFields
    blocked: str = ""
    unasked: str = ""
    again: timedelta | None = None


async def keep(context: StepContext, remote: Remote, found: PullRequest) -> Kept:
    """Make the updates that are due for an open pull request."""
    kept = await _branch(context, remote, found)
    if kept.found.state != "open":
        return kept
    if remote.capabilities.statuses and kept.head is not None:
        reasons = [*context.holds(), *([kept.unasked] if kept.unasked else ())]
        await tell_gates(context, remote, kept.head, reasons)
    again = await _text(context, remote, kept)
    return replace(kept, blocked=kept.blocked or _draft(kept.found), again=again)


def _draft(found: PullRequest) -> str:
    """Return the obstacle of a draft, which must not be merged until a person marks it as ready; empty for others."""
    if not found.draft:
        return ""
    return f"pull request {found.number} is a draft, and kardinal merges none: a person marks it as ready, or closes it"


async def _branch(context: StepContext, remote: Remote, found: PullRequest) -> Kept:
    """Make the branch again on its base if that is needed, and if only kardinal has written to it."""
    as_it_is = Kept(found, found.head_commit, StatusFields())
    if found.base != context.target:
        message = f"pull request {found.number} is to be merged into {found.base} instead of {context.target}"
        blocked = f"{message}: change its base back, or close it"
        return Kept(found, found.head_commit, StatusFields(), blocked=blocked, unasked=message)
    if context.holds():
        return as_it_is
    repository = remote.repository
    try:
        landed = await repository.propose(
            context.branch,
            base=context.target,
            edit=context.edit,
            message=context.message,
            signer=remote.signer,
            ours=context.status.commit,
        )
    except PushRejected as error:
        return await _unless_merged(context, remote, found, blocked=str(error))
    if landed.shared:
        unasked = f"branch {context.branch} has commits of others, of which no gate was asked"
        blocked = await _of_others(context, remote)
        return Kept(found, landed.commit, StatusFields(), blocked=blocked, unasked=unasked)
    if not landed.changed:
        return await _unless_merged(context, remote, found)
    update: StatusFields = {"commit": landed.commit, "tree": landed.tree}
    if not landed.adopted:
        # It was merged meanwhile: the host deleted the branch, and our push created it again.
        found = await remote.proposals.get(found.number)
        if found.state != "open":
            await remove_branch(repository, context.step, context.proposal)
            update = StatusFields()
    if update and landed.commit != context.status.commit:
        base = await repository.head(context.target)
        update["diff"] = (await repository.plan(base.commit, context.edit)).diff or None
    return Kept(found, landed.commit, update)


async def _unless_merged(context: StepContext, remote: Remote, found: PullRequest, *, blocked: str = "") -> Kept:
    """Read the pull request again: it may have been merged meanwhile, so that nothing is left to propose."""
    found = await remote.proposals.get(found.number)
    if found.state != "open":
        return Kept(found, found.head_commit, StatusFields())
    ours = found.head_commit == context.status.commit
    unasked = "" if ours else f"the head of branch {context.branch} is not what the promotion has proposed"
    return Kept(found, found.head_commit, StatusFields(), blocked=blocked, unasked=unasked)


async def _of_others(context: StepContext, remote: Remote) -> str:
    """Return the obstacle that commits of others on the branch make; empty if the review can go on."""
    files = await remote.repository.conflicts(context.branch, base=context.target)
    if files:
        return (
            f"branch {context.branch} has commits of others and conflicts with {context.target} in "
            f"{', '.join(files)}: resolve it on the branch, or close the pull request"
        )
    if context.merges_itself:
        return (
            f"branch {context.branch} has commits of others, which are not merged without a review: "
            "merge or close the pull request, or take them off the branch"
        )
    return ""


async def _text(context: StepContext, remote: Remote, kept: Kept) -> timedelta | None:
    """Write the text if it has changed; return the time until it may be written, None if it needs no write."""
    found = kept.found
    diff = kept.update.get("diff", context.status.diff)
    changes = (await text_of(context, remote.repository, diff)).changes_of(found)
    if not changes:
        return None
    if delay := context.host_memory.text_delay(context.key):
        return delay
    context.host_memory.note_text(context.key)
    await remote.proposals.update(found.number, title=changes.get("title"), body=changes.get("body"))
    return None
