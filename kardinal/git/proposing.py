"""An edit on a branch of its own, waiting to be merged. Runs on a thread.

The branch's name is deterministic, so a restart meets its own work. What it finds there decides:

- nothing: the branch is made from the base's head;
- the base's head, with what the edit says: the proposal was merged by moving the base forward, and nothing is changed;
- our commit at the tip, made where the base's files are still the same, and saying what the edit says: adopted;
- our commit at the tip, but those files have changed on the base since: replaced by a new commit on today's base,
  because the old one would conflict with it for ever;
- our commit below merges of the base, as "Update branch" on a host's page makes them: as if it were the tip;
- our commit below others, or one with our trailers that we did not make, as after `git commit --amend`: a reviewer has
  added to it, so it is adopted as it stands;
- anything else: refused, because it is not ours to overwrite.
"""

from __future__ import annotations

from datetime import datetime

from kardinal.git.backend import Backend, require_tip
from kardinal.git.base_merges import below_base_merges
from kardinal.git.errors import DamagedRepository, PushRejected
from kardinal.git.history import History
from kardinal.git.landing import PlannedCommit
from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.git.runner import off_loop
from kardinal.git.tree import TreeView, apply
from kardinal.git.values import Commit, Landed
from kardinal.steps.edit import Changes

__all__ = ["propose", "retract"]


@off_loop
def propose(
    backend: Backend,
    history: History,
    branch: str,
    *,
    base: str,
    planned: PlannedCommit,
    time: datetime,
    ours: str | None = None,
) -> Landed:
    """Have `branch` propose the edit of `planned` for `base`; `ours` is the commit that is known to be made here."""
    repository = backend.open()
    staging = Staging(repository)
    tip = backend.tip(branch_ref(branch))
    base_tip = require_tip(backend, base)
    before = history.commit(staging, base_tip).tree
    files = planned.edit(TreeView.for_edit(staging, before))
    after = apply(staging, before, files)
    if tip is not None and not (tip == base_tip and after == before):
        found = history.find(staging, tip, planned.message.trailers, since=base_tip)
        if found is None:
            raise PushRejected(
                f"branch {branch} exists and was not made by this promotion",
                remedy="Delete or rename it",
            )
        current = history.commit(staging, tip)
        names = planned.message.trailers
        proposed = below_base_merges(repository, history, staging, tip, base=base_tip, trailers=names)
        shared = found.id != proposed.commit.id or (
            ours not in proposed.ids and not _is_made(staging, history, proposed.commit, planned)
        )
        if shared or (_says(staging, current.tree, files) and _agree(staging, proposed.base_tree, before, files)):
            return Landed(commit=tip, tree=current.tree, changed=True, adopted=True, shared=shared)
    if after == before:
        return Landed(commit=base_tip, tree=before, changed=False, adopted=False)
    new = planned.commit(staging, tree=after, parent=base_tip, time=time)
    backend.publish(branch_ref(branch), old=tip, new=new, staging=staging)
    return Landed(commit=new, tree=after, changed=True, adopted=False)


@off_loop
def retract(
    backend: Backend, history: History, branch: str, *, base: str, planned: PlannedCommit, ours: str | None
) -> bool:
    """Remove `branch` where nothing is on it but our commit; return whether it is gone."""
    repository = backend.open()
    staging = Staging(repository)
    tip = backend.tip(branch_ref(branch))
    if tip is None:
        return True
    onto = backend.tip(branch_ref(base))
    names = planned.message.trailers
    found = history.find(staging, tip, names, since=onto)
    proposed = below_base_merges(repository, history, staging, tip, base=onto, trailers=names)
    if found is None or found.id != proposed.commit.id:
        return False
    if ours not in proposed.ids and not _is_edit(staging, history, found, planned):
        return False
    backend.remove(branch_ref(branch), old=tip)
    return True


def _is_edit(staging: Staging, history: History, commit: Commit, planned: PlannedCommit) -> bool:
    """Return whether a commit is nothing but the edit of `planned`; of one that cannot be made here it is not known."""
    try:
        return bool(commit.parents) and _is_made(staging, history, commit, planned)
    except DamagedRepository:
        raise
    except Exception:  # an edit is foreign code, and its sources may be closed
        return False


def _is_made(staging: Staging, history: History, commit: Commit, planned: PlannedCommit) -> bool:
    """Return whether the edit of `planned` makes the tree of a commit from that of its parent."""
    tree = history.commit(staging, commit.parents[0]).tree if commit.parents else commit.tree
    return apply(staging, tree, planned.edit(TreeView.for_edit(staging, tree))) == commit.tree


def _agree(staging: Staging, tree: str, other: str, files: Changes) -> bool:
    """Return whether two trees have the same content where `files` are."""
    one, two = TreeView(staging, tree), TreeView(staging, other)
    return all(one.identify(path) == two.identify(path) for path in files)


def _says(staging: Staging, tree: str, files: Changes) -> bool:
    view = TreeView(staging, tree)
    wanted = {path: None if content is None else staging.add_blob(content) for path, content in files.items()}
    return all(view.identify(path) == blob for path, blob in wanted.items())
