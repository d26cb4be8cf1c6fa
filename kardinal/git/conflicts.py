"""The files in which a branch and its base cannot be merged. Runs on a thread, and writes nothing.

Only files that both sides have changed are read: a mirror may lack the contents of all others.
"""

from __future__ import annotations

from kardinal.git.ancestry import merge_base
from kardinal.git.backend import Backend, require_tip
from kardinal.git.history import History
from kardinal.git.merging_trees import merge_trees
from kardinal.git.objects import Staging
from kardinal.git.runner import off_loop

__all__ = ["conflicting_files"]


@off_loop
def conflicting_files(backend: Backend, history: History, branch: str, base: str) -> tuple[str, ...]:
    """Return the paths of conflicts between `branch` and `base`, in order; none where one contains the other."""
    staging = Staging(backend.open())
    tip, onto = require_tip(backend, branch), require_tip(backend, base)
    origin = merge_base(staging, onto, tip)
    if origin is None or origin in (tip, onto):
        return ()
    _, conflicts = merge_trees(staging, *(history.commit(staging, commit).tree for commit in (origin, onto, tip)))
    return tuple(conflicts)
