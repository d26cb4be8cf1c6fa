"""The files in which a branch and its base cannot be merged. Runs on a thread, and writes nothing.

Only files that both sides have changed are read: a mirror may lack the contents of all others.
"""

from __future__ import annotations

from collections.abc import Iterator

from pygit2.enums import MergeFlag

from kardinal.git.backend import Backend, require_tip
from kardinal.git.history import History
from kardinal.git.objects import Entry, Staging
from kardinal.git.runner import off_loop

__all__ = ["conflicting_files", "contested"]


@off_loop
def conflicting_files(backend: Backend, history: History, branch: str, base: str) -> tuple[str, ...]:
    """Return the paths of conflicts between `branch` and `base`, in order; none where one contains the other."""
    repository = backend.open()
    staging = Staging(repository)
    tip, onto = require_tip(backend, branch), require_tip(backend, base)
    origin = repository.merge_base(onto, tip)
    if origin is None or str(origin) in (tip, onto):
        return ()
    trees = [history.commit(staging, commit).tree for commit in (str(origin), onto, tip)]
    for blob in contested(staging, *map(Entry.directory, trees)):
        staging.read(blob)
    index = repository.merge_trees(trees[0], trees[1], trees[2], flags=MergeFlag(0))
    found = (entry.path for conflict in index.conflicts or () for entry in conflict if entry is not None)
    return tuple(sorted(set(found)))


def contested(staging: Staging, origin: Entry | None, ours: Entry | None, theirs: Entry | None) -> Iterator[str]:
    """Yield the files, old and new, that both sides have changed in different ways."""
    if ours in (origin, theirs) or theirs == origin:
        return
    sides = (origin, ours, theirs)
    if any(side is not None and side.is_directory for side in sides):
        trees = [staging.tree(side.id) if side is not None and side.is_directory else {} for side in sides]
        for name in sorted(set().union(*trees)):
            before, one, other = (tree.get(name) for tree in trees)
            yield from contested(staging, before, one, other)
        return
    yield from (side.id for side in sides if side is not None and side.is_file)
