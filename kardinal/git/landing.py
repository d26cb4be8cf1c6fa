"""Edits on a branch: commits are built on its tip and published together. Runs on a thread.

One attempt takes a batch of edits and searches the history for the trailers of each, because after a restart an edit
must find its own commit instead of creating a second one. The other edits are applied on top of each other, one commit
each. All commits are published at once, so that a hundred promotions of one repository do not need a hundred pushes.

An edit that raises fails alone; the others of its batch land.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kardinal.git.backend import Backend, require_tip
from kardinal.git.errors import DamagedRepository, ObjectsMissing
from kardinal.git.history import History
from kardinal.git.names import branch_ref
from kardinal.git.objects import Signer, Staging
from kardinal.git.tree import TreeView, apply
from kardinal.git.values import Landed
from kardinal.processes.threads import off_loop
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Edit

__all__ = ["PlannedCommit", "land_all"]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCommit:
    """An edit that will become one commit."""

    edit: Edit
    message: CommitMessage
    signer: Signer | None = None

    def commit(self, staging: Staging, *, tree: str, parent: str, time: datetime) -> str:
        """Add the commit and return its id."""
        return staging.add_commit(
            tree=tree,
            parent=parent,
            message=str(self.message),
            time=time,
            author=self.message.author,
            committer=self.message.committer,
            signer=self.signer,
        )


@off_loop
def land_all(
    backend: Backend, history: History, branch: str, commits: Sequence[PlannedCommit], *, time: datetime
) -> list[Landed | Exception]:
    """Put `commits` on `branch` with one push; return a result or an error for each."""
    staging = Staging(backend.open())
    tip = require_tip(backend, branch)
    head = tip
    results = list[Landed | Exception]()
    missing = set[str]()
    for planned in commits:
        found = history.find(staging, head, planned.message.trailers)
        if found is not None:
            results.append(Landed(commit=found.id, tree=found.tree, changed=True, adopted=True))
            continue
        before = history.commit(staging, head).tree
        try:
            after = apply(staging, before, planned.edit(TreeView.for_edit(staging, before)))
        except ObjectsMissing as error:
            missing |= error.ids
            continue
        except DamagedRepository:
            raise
        # an edit is foreign code: its error is only for its own caller, not for the other edits
        except Exception as error:
            results.append(error)
            continue
        if after == before:
            results.append(Landed(commit=head, tree=before, changed=False, adopted=False))
            continue
        head = planned.commit(staging, tree=after, parent=head, time=time)
        results.append(Landed(commit=head, tree=after, changed=True, adopted=False))
    if missing:
        # Fetched at once, for all edits of the batch.
        raise ObjectsMissing(frozenset(missing))
    if head != tip:
        backend.publish(branch_ref(branch), old=tip, new=head, staging=staging)
    return results
