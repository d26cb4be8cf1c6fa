"""Put a proposed commit onto its base, without a merge commit, and find what prevents it. Runs on a thread.

If the base has not moved, it is fast-forwarded to the proposal. Otherwise the changes of the proposal are applied to
the present base as one commit with the proposal's own message and trailers, so that there is one commit per environment
and the promotion finds it. Merging twice, or again after a crash, finds the result of the first merge.
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
from kardinal.git.values import Commit, Landed
from kardinal.processes.threads import off_loop

__all__ = ["conflicting_files", "merge"]


@off_loop
def merge(backend: Backend, history: History, branch: str, commit: str, *, time: datetime) -> Landed:
    """Merge `commit` into `branch`."""
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


@off_loop
def conflicting_files(backend: Backend, history: History, branch: str, base: str) -> tuple[str, ...]:
    """Return the sorted paths of conflicts between `branch` and `base`; empty if one contains the other.

    Only files that both sides have changed are read, because a mirror may lack the contents of all others.
    """
    staging = Staging(backend.open())
    tip = require_tip(backend, branch)
    onto = require_tip(backend, base)
    origin = merge_base(staging, onto, tip)
    if origin is None or origin in (tip, onto):
        return ()
    _, conflicts = merge_trees(staging, *(history.commit(staging, commit).tree for commit in (origin, onto, tip)))
    return tuple(conflicts)


def _first_of(history: History, staging: Staging, tip: str, *, origin: str) -> Commit:
    """Return the commit whose message is used for a proposal: the promotion's own, or else the last one."""
    proposal = list(history.walk(staging, tip, since=origin))
    return next((commit for commit in reversed(proposal) if commit.trailers), proposal[0])
