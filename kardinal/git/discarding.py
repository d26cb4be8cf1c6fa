"""Remove the branch of a proposal when its Bundle is gone. Runs on a thread.

A branch is removed only if others lose nothing: if it has only a commit of kardinal, recognised by its trailers and
committer; if the base contains it; or if it was merged in another form. A reviewer who amends the commit becomes its
committer, so an amended branch is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kardinal.git.backend import Backend
from kardinal.git.base_merges import below_base_merges
from kardinal.git.history import History, contains
from kardinal.git.names import branch_ref
from kardinal.git.objects import Staging
from kardinal.processes.threads import off_loop

__all__ = ["OwnCommit", "discard"]


@dataclass(frozen=True, slots=True)
class OwnCommit:
    """The properties by which the commit of a proposal is recognised.

    `merged` is the head of its merged pull request.
    """

    trailers: Mapping[str, str]
    committer: str
    merged: str | None = None


@off_loop
def discard(backend: Backend, history: History, branch: str, *, base: str, own: OwnCommit) -> bool:
    """Remove `branch` unless others have added to it; return whether it is gone."""
    repository = backend.open()
    staging = Staging(repository)
    tip = backend.tip(branch_ref(branch))
    if tip is None:
        return True
    found = history.find(staging, tip, own.trailers)
    if found is None:
        return False
    onto = backend.tip(branch_ref(base))
    landed = tip == own.merged or (onto is not None and contains(repository, onto, tip))
    if not landed:
        proposed = below_base_merges(repository, history, staging, tip, base=onto, trailers=own.trailers)
        if found.id != proposed.commit.id or found.committer != own.committer:
            return False
    backend.remove(branch_ref(branch), old=tip)
    return True
