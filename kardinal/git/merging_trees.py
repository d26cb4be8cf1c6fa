"""Merge two trees within limits: changes of one side are taken, changes of both sides are merged by lines.

A directory is opened only if both sides have changed it, so the rest of a repository may have any size. libgit2 would
read every directory, and compare texts without a limit. A renamed file counts as one deleted and one new file.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.git.lines import Effort, Hunk, TooDifferent, hunks, is_binary, split_lines
from kardinal.git.objects import Staging, TreeEntry, check_depth
from kardinal.tree.edit import EDITED_LIMIT

__all__ = ["merge_texts", "merge_trees"]


def merge_trees(staging: Staging, origin: str, ours: str, theirs: str) -> tuple[str, list[str]]:
    """Return the tree with both changes since `origin`, and the paths of conflicts, which keep `ours`."""
    merge = _Merge(staging)
    merged = merge.entry("", *map(TreeEntry.directory, (origin, ours, theirs)))
    return merged.id if merged is not None else staging.add_tree({}), sorted(merge.conflicts)


def merge_texts(origin: bytes, ours: bytes, theirs: bytes, effort: Effort) -> bytes | None:
    """Return the text with both changes; None if they touch the same lines, or comparing them is too much work."""
    texts = (origin, ours, theirs)
    if any(is_binary(text) for text in texts):
        return None
    try:
        base, one, other = map(split_lines, texts)
        sides = list(hunks(base, one, effort)), list(hunks(base, other, effort))
    except TooDifferent:
        return None
    merged = list[bytes]()
    at = 0
    while sides[0] or sides[1]:
        mine, yours = _next(*sides)
        taken = [each[0].start for each in (mine, yours) if each]
        start = min(taken)
        end = max(each[-1].end for each in (mine, yours) if each)
        first, second = (_region(*side, start, end) for side in ((base, one, mine), (base, other, yours)))
        if mine and yours and first != second:
            return None
        merged += base[at:start]
        merged += first if mine else second
        at = end
    return b"".join([*merged, *base[at:]])


def _next(mine: list[Hunk], yours: list[Hunk]) -> tuple[list[Hunk], list[Hunk]]:
    """Take the first hunks of both sides, as far as they touch each other."""
    taken: tuple[list[Hunk], list[Hunk]] = ([], [])
    end: int | None = None
    while True:
        for side, into in zip((mine, yours), taken, strict=True):
            if side and (side[0].start <= end if end is not None else _is_first(side[0], mine, yours)):
                into.append(side.pop(0))
                end = max(end or 0, into[-1].end)
                break
        else:
            return taken


def _is_first(hunk: Hunk, mine: Sequence[Hunk], yours: Sequence[Hunk]) -> bool:
    return hunk.start == min(side[0].start for side in (mine, yours) if side)


def _region(
    base: Sequence[bytes], text: Sequence[bytes], found: Sequence[Hunk], start: int, end: int
) -> Sequence[bytes]:
    """Return the lines of one side that replace the lines of the base from `start` to `end`."""
    if not found:
        return base[start:end]
    return text[found[0].other_start - (found[0].start - start) : found[-1].other_end + (end - found[-1].end)]


class _Merge:
    """One merge: its conflicts so far, and the remaining budget of work."""

    def __init__(self, staging: Staging) -> None:
        self.conflicts: list[str] = []
        self._staging = staging
        self._effort = Effort()

    def entry(
        self, path: str, origin: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None
    ) -> TreeEntry | None:
        """Return the entry at a path after the merge; None if there is none."""
        if theirs in (ours, origin):
            return ours
        if ours == origin:
            return theirs
        sides = (origin, ours, theirs)
        if all(side is None or side.is_directory for side in sides):
            return self._directory(path, *sides)
        merged = self._file(*sides)
        if merged is None:
            self.conflicts.append(path)
            return ours
        return merged

    def _directory(self, path: str, *sides: TreeEntry | None) -> TreeEntry | None:
        check_depth(path)
        origin, ours, theirs = ({} if side is None else self._staging.tree(side.id) for side in sides)
        merged: dict[str, TreeEntry] = {}
        for name in sorted(origin.keys() | ours.keys() | theirs.keys()):
            below = f"{path}/{name}" if path else name
            found = self.entry(below, origin.get(name), ours.get(name), theirs.get(name))
            if found is not None:
                merged[name] = found
        return TreeEntry.directory(self._staging.add_tree(merged)) if merged else None

    def _file(self, origin: TreeEntry | None, ours: TreeEntry | None, theirs: TreeEntry | None) -> TreeEntry | None:
        """Return the merge of a file that both sides have changed; None for a conflict."""
        if origin is None or ours is None or theirs is None:
            return None
        if not all(side.is_file for side in (origin, ours, theirs)):
            return None
        if any(self._staging.size(side.id) > EDITED_LIMIT for side in (origin, ours, theirs)):
            return None
        before, one, other = (self._staging.read(side.id) for side in (origin, ours, theirs))
        merged = merge_texts(before, one, other, self._effort)
        if merged is None:
            return None
        return TreeEntry(theirs.mode if ours.mode == origin.mode else ours.mode, self._staging.add_blob(merged))
