"""Edits on a branch: what is built on a tip, and published against it. Runs on a thread.

One attempt takes a batch of edits, looks for each one's trailers in history first (a restart must find its own
commit and not make a second one), and puts the others on top of each other, one commit each. All of them are
published at once, so that a hundred promotions of one repository do not need a hundred pushes.

An edit that can not be made fails alone; the others of its batch land.
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
from kardinal.git.runner import off_loop
from kardinal.git.tree import TreeView, apply
from kardinal.git.values import Landed
from kardinal.steps.commit_message import CommitMessage
from kardinal.steps.edit import Edit

__all__ = ["PlannedCommit", "land_all"]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedCommit:
    """An edit that is to be one commit."""

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
    """Put `commits` on `branch` as one push; each gets its result or its own error."""
    staging = Staging(backend.open())
    tip = require_tip(backend, branch)
    head, results, missing = tip, list[Landed | Exception](), set[str]()
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
        except Exception as error:  # an edit is foreign code: whatever it raises is its caller's, not its neighbours'
            results.append(error)
            continue
        if after == before:
            results.append(Landed(commit=head, tree=before, changed=False, adopted=False))
            continue
        head = planned.commit(staging, tree=after, parent=head, time=time)
        results.append(Landed(commit=head, tree=after, changed=True, adopted=False))
    if missing:
        # All at once, for all edits of the batch.
        raise ObjectsMissing(frozenset(missing))
    if head != tip:
        backend.publish(branch_ref(branch), old=tip, new=head, staging=staging)
    return results
