"""Keep an open pull request true while it waits: its branch, its commit statuses, and its text.

A draft is kept true as well, and waits for a person.

A proposal whose files have changed on the base is made again, as long as only kardinal has written to its branch. What
others have committed there is never overwritten: where it conflicts with the base the promotion is held, and says in
which files. Nothing is pushed while a freeze or a gate holds the promotion; statuses and text say so at once.

The gates were asked about what kardinal proposes, where it proposes it. So success is said of no other head, and of
none that is to be merged elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from kardinal.git import PushRejected
from kardinal.scm import PullRequest
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.base import StatusFields, StepContext
from kardinal_agent.steps.pull_requests import tell_gates, text_of

__all__ = ["Kept", "keep"]


@dataclass(frozen=True, slots=True)
class Kept:
    """A pull request after the upkeep: the commit it proposes, and what is in the way of merging it.

    `unasked`: why the gates' answer is not about this head. `again`: how long the rest of the upkeep has to wait.
    """

    found: PullRequest
    head: str | None
    update: StatusFields
    blocked: str = ""
    unasked: str = ""
    again: timedelta | None = None


async def keep(context: StepContext, remote: Remote, found: PullRequest) -> Kept:
    """Do what is due for a pull request that was seen open."""
    kept = await _branch(context, remote, found)
    if kept.found.state != "open":
        return kept
    if remote.capabilities.statuses and kept.head is not None:
        reasons = [*context.holds(), *([kept.unasked] if kept.unasked else ())]
        await tell_gates(context, remote, kept.head, reasons)
    again = await _text(context, remote, kept)
    return replace(kept, blocked=kept.blocked or _draft(kept.found), again=again)


def _draft(found: PullRequest) -> str:
    """Return that a pull request is a draft, which is a person's word that it is not to be merged."""
    if not found.draft:
        return ""
    return f"pull request {found.number} is a draft, and kardinal merges none: a person marks it as ready, or closes it"


async def _branch(context: StepContext, remote: Remote, found: PullRequest) -> Kept:
    """Bring the branch up to its base, which was read a moment ago, unless it is not for kardinal to write to."""
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
        # Merged at this moment, its branch was taken away and is here again.
        found = await remote.proposals.get(found.number)
        if found.state != "open":
            await _retract(context, remote, landed.commit)
            update = StatusFields()
    if update and landed.commit != context.status.commit:
        base = await repository.head(context.target)
        update["diff"] = (await repository.plan(base.commit, context.edit)).diff or None
    return Kept(found, landed.commit, update)


async def _unless_merged(context: StepContext, remote: Remote, found: PullRequest, *, blocked: str = "") -> Kept:
    """Look again: merged at this moment, its commits are the base's, and nothing is left to propose."""
    found = await remote.proposals.get(found.number)
    if found.state != "open":
        return Kept(found, found.head_commit, StatusFields())
    ours = found.head_commit == context.status.commit
    unasked = "" if ours else f"the head of branch {context.branch} is not what the promotion has proposed"
    return Kept(found, found.head_commit, StatusFields(), blocked=blocked, unasked=unasked)


async def _of_others(context: StepContext, remote: Remote) -> str:
    """Return what others' commits on the branch are in the way of; empty for a review that goes on."""
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


async def _retract(context: StepContext, remote: Remote, commit: str | None) -> None:
    await remote.repository.retract(
        context.branch, base=context.target, edit=context.edit, message=context.message, ours=commit
    )


async def _text(context: StepContext, remote: Remote, kept: Kept) -> timedelta | None:
    """Write the text when it says something else than before; return how long that has to wait."""
    found, diff = kept.found, kept.update.get("diff", context.status.diff)
    changes = (await text_of(context, remote.repository, diff)).changes_of(found)
    if not changes:
        return None
    if delay := context.host_memory.text_delay(context.key):
        return delay
    context.host_memory.note_text(context.key)
    await remote.proposals.update(found.number, title=changes.get("title"), body=changes.get("body"))
    return None
