"""Withdraw a proposal: close its pull request with a comment, and remove its branch unless others have committed to it.

Nothing else closes a pull request or removes a branch. A proposal is known by what the status has noted of it, so its
Bundle and the sources of its edits may be gone: the branch is ours only if its commit carries the name of the
PromotionStep and the UID of the Bundle, and a pull request only if it is the noted one, or one of that branch.
"""

from __future__ import annotations

from kardinal.git import BranchNotFound, Repository
from kardinal.git.discarding import OwnCommit
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.promotion_step import Proposal
from kardinal.promotion.steps.commit_plan import committer_of
from kardinal.scm import PullRequest, PullRequestEnded, PullRequestNotFound, PullRequests
from kardinal.tree.git_names import TRAILER_STEP, TRAILER_UID
from kardinal_agent.steps.pull_requests import AGENT, is_of_bundle, is_own
from kardinal_agent.steps.text_marks import without_owner

__all__ = ["close_proposal", "find_proposal", "is_of_others", "remove_branch"]


async def find_proposal(step: PromotionStep, proposal: Proposal, pull_requests: PullRequests) -> PullRequest | None:
    """Return the pull request of a proposal; None if there is none, or if a Bundle of the same name has made it."""
    noted = step.status.pull_request
    if noted is not None:
        try:
            found = await pull_requests.get(noted.number)
        except PullRequestNotFound:
            pass
        else:
            return found if found.head == proposal.branch and is_of_bundle(found, proposal.bundle_uid) else None
    newest = await pull_requests.find(proposal.branch, base=step.spec.target_branch)
    if newest is None or newest.head != proposal.branch or not is_of_bundle(newest, proposal.bundle_uid):
        return None
    return newest if newest.state == "open" or is_own(newest, uid=proposal.bundle_uid, status=step.status) else None


async def close_proposal(pull_requests: PullRequests, found: PullRequest, comment: str) -> PullRequest:
    """Close a pull request that is open, and return it as it is then: a person who merges it at that moment wins."""
    if found.state != "open":
        return found
    try:
        await pull_requests.update(found.number, body=without_owner(found.body))
        return await pull_requests.close(found.number, by=AGENT, comment=comment)
    except PullRequestEnded:
        return await pull_requests.get(found.number)


async def remove_branch(
    repository: Repository, step: PromotionStep, proposal: Proposal, *, merged: PullRequest | None = None
) -> bool:
    """Remove the branch of a proposal unless others have committed to it; return whether it is gone.

    What they have committed is kept as well if `merged`, the pull request of the branch, was merged with it.
    """
    head = merged.head_commit if merged is not None and merged.state == "merged" else None
    own = OwnCommit(trailers=_trailers(step, proposal), committer=committer_of(step), merged=head)
    return await repository.discard(proposal.branch, base=step.spec.target_branch, own=own)


async def is_of_others(repository: Repository, step: PromotionStep, proposal: Proposal) -> bool:
    """Return whether the branch is there without a commit of this promotion: the note of it was forged."""
    try:
        return await repository.find(proposal.branch, _trailers(step, proposal)) is None
    except BranchNotFound:
        return False


def _trailers(step: PromotionStep, proposal: Proposal) -> dict[str, str]:
    return {TRAILER_STEP: f"{step.metadata.namespace}/{step.metadata.name}", TRAILER_UID: proposal.bundle_uid}
