"""A proposed commit onto its base, without a merge commit. Runs on a thread.

Where the base has not moved, it moves forward to the proposal. Where it has, the proposal's difference is applied
to today's base as one commit with the proposal's own message, trailers included, so that one commit per environment
holds and the promotion finds it. Merging twice, or again after a crash, finds what was merged the first time.
"""

from __future__ import annotations

from datetime import datetime

from kardinal.git.ancestry import merge_base
from kardinal.git.backend import Backend, require_tip
from kardinal.git.errors import GitError, MergeConflict
from kardinal.git.history import History, contains
from kardinal.git.merging_trees import merge_trees
from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.git.runner import off_loop
from kardinal.git.values import Commit, Landed

__all__ = ["merge"]


@off_loop
def merge(backend: Backend, history: History, branch: str, commit: str, *, time: datetime) -> Landed:
    """Bring `commit` onto `branch`."""
    repository = backend.open()
    staging = Staging(repository)
    tip = require_tip(backend, branch)
    proposed = history.commit(staging, commit)
    if contains(repository, tip, commit):
        return Landed(commit=commit, tree=proposed.tree, changed=True, adopted=True)

    origin = merge_base(staging, tip, commit)
    if origin is None:
        raise GitError(f"the proposal shares no history with {branch}", remedy="Close it and promote again")
    if origin == tip:
        backend.publish(branch_ref(branch), old=tip, new=commit, staging=staging)
        return Landed(commit=commit, tree=proposed.tree, changed=True, adopted=False)

    first = _first_of(history, staging, commit, origin=origin)
    found = history.find(staging, tip, first.trailers, since=origin)
    if found is not None:
        return Landed(commit=found.id, tree=found.tree, changed=True, adopted=True)
    before = history.commit(staging, tip).tree
    after, conflicts = merge_trees(staging, history.commit(staging, origin).tree, before, proposed.tree)
    if conflicts:
        raise MergeConflict(conflicts, remedy="Close the pull request and promote again, or rebase its branch by hand")
    if after == before:
        return Landed(commit=tip, tree=before, changed=False, adopted=False)
    message = staging.read(first.id).partition(b"\n\n")[2].decode("utf-8", "replace")
    new = staging.add_commit(tree=after, parent=tip, message=message, time=time, author=first.author)
    backend.publish(branch_ref(branch), old=tip, new=new, staging=staging)
    return Landed(commit=new, tree=after, changed=True, adopted=False)


def _first_of(history: History, staging: Staging, tip: str, *, origin: str) -> Commit:
    """Return the commit whose message speaks for a proposal: the promotion's own, or else the last one."""
    proposal = list(history.walk(staging, tip, since=origin))
    return next((commit for commit in reversed(proposal) if commit.trailers), proposal[0])
