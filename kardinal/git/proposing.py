"""An edit on a branch of its own, to be merged later. Runs on a thread.

The branch's name is deterministic, so after a restart the branch of the earlier run is found. Its state decides:

- no branch: it is created from the base's head;
- the base's head, with the content of the edit: the proposal was merged by a fast-forward, and nothing is changed;
- our commit at the tip, with the content of the edit, and the files are still the same on the base: adopted;
- our commit at the tip, but these files have changed on the base since: replaced by a new commit on the present base,
  because the old one would stay in conflict with it;
- our commit below merges of the base, as "Update branch" on a host's page creates them: treated as if at the tip;
- our commit below others, or a commit with our trailers that was not made here, as after `git commit --amend`: a
  reviewer has added to it, so it is adopted without changes;
- anything else: refused, because the branch belongs to others.
"""

from __future__ import annotations

from datetime import datetime

from kardinal.git.backend import Backend, require_tip
from kardinal.git.base_merges import below_base_merges
from kardinal.git.errors import PushRejected
from kardinal.git.history import History
from kardinal.git.landing import PlannedCommit
from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.git.tree import TreeView, apply
from kardinal.git.values import Commit, Landed
from kardinal.processes.threads import off_loop
from kardinal.tree.edit import Changes

__all__ = ["propose"]


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
    """Create or update `branch` with the edit of `planned` for `base`; `ours` is the commit known to be made here."""
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


def _is_made(staging: Staging, history: History, commit: Commit, planned: PlannedCommit) -> bool:
    """Return whether the edit of `planned` turns the tree of the commit's parent into the tree of the commit."""
    tree = history.commit(staging, commit.parents[0]).tree if commit.parents else commit.tree
    return apply(staging, tree, planned.edit(TreeView.for_edit(staging, tree))) == commit.tree


def _agree(staging: Staging, tree: str, other: str, files: Changes) -> bool:
    """Return whether two trees have the same content at the paths of `files`."""
    one = TreeView(staging, tree)
    two = TreeView(staging, other)
    return all(one.identify(path) == two.identify(path) for path in files)


def _says(staging: Staging, tree: str, files: Changes) -> bool:
    view = TreeView(staging, tree)
    wanted = {path: None if content is None else staging.add_blob(content) for path, content in files.items()}
    return all(view.identify(path) == blob for path, blob in wanted.items())
