"""Ancestry of commits: whether a branch contains a commit, and where two lines of commits meet.

libgit2 can answer the same, but it reads every commit on the way, whatever its size, and holds the GIL meanwhile. Here
commits are read by `Staging`, which checks the size first, and the walk has a maximum depth.

Both lines are followed back, newest commit first, and mark the commits that they reach. A commit reached by both is
common, and everything behind it is stale; the walk ends when only stale commits are left. Timestamps determine the
order. With wrong timestamps `contains` is still right, but the other functions may notice too late that a commit is
common, as in Git.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

from kardinal.git.errors import DamagedRepository, GitError
from kardinal.git.objects import Staging

__all__ = ["contains", "merge_base", "only_in"]

_DEPTH = 200_000
"""The most commits of a walk."""
_BYTES = 256 << 20
"""The total size of all commits of a walk, in bytes."""

_ONE = 1
_OTHER = 2
_STALE = 4
_COMMON = _ONE | _OTHER

_PARENT = re.compile(rb"parent ([0-9a-f]{40})\n")
_TIME = re.compile(rb"^committer .*> (-?\d+) [+-]\d+$", re.MULTILINE)
_DIGITS = 18
"""Characters of a time that are read; a longer one is later, or earlier, than all others in any case."""
_TREE_LINE = len("tree \n") + 40


def contains(staging: Staging, tip: str, oid: str) -> bool:
    """Return whether the commit `oid` is `tip` or one of its ancestors."""
    if tip == oid:
        return True
    walk = _Walk(staging, tip, oid)
    return any(walk.reached(oid) & _ONE for _ in walk.run()) or bool(walk.reached(oid) & _ONE)


def merge_base(staging: Staging, one: str, other: str) -> str | None:
    """Return the best common ancestor of two commits: one that no other common ancestor descends from; or None."""
    if one == other:
        return one
    walk = _Walk(staging, one, other)
    common = [oid for oid in walk.run() if walk.reached(oid) & _COMMON == _COMMON]
    return next((oid for oid in common if not walk.reached(oid) & _STALE), None)


def only_in(staging: Staging, one: str, other: str) -> list[str]:
    """Return the commits that `one` has and `other` does not have, newest first."""
    if one == other:
        return []
    walk = _Walk(staging, one, other)
    found = dict.fromkeys(walk.run())
    return [oid for oid in found if walk.reached(oid) == _ONE]


class _Walk:
    """One walk back from two commits."""

    def __init__(self, staging: Staging, one: str, other: str) -> None:
        self._staging = staging
        self._flags: dict[str, int] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._queue: list[tuple[int, str]] = []
        self._fresh: set[str] = set()
        """Commits in the queue that are not behind a common commit."""
        self._bytes = _BYTES
        self._paint(one, _ONE)
        self._paint(other, _OTHER)

    def reached(self, oid: str) -> int:
        """Return the flags of a commit."""
        return self._flags.get(oid, 0)

    def run(self) -> Iterator[str]:
        """Yield commits in the order of their visits; a commit that is reached again later is yielded again."""
        while self._fresh:
            _, oid = heapq.heappop(self._queue)
            self._fresh.discard(oid)
            flags = self._flags[oid]
            if oid not in self._parents:
                continue  # visited already, with the same flags
            yield oid
            behind = flags | _STALE if flags & _COMMON == _COMMON else flags
            for parent in self._parents.pop(oid):
                self._paint(parent, behind)

    def _paint(self, oid: str, flags: int) -> None:
        known = self._flags.get(oid, 0)
        if known | flags == known:
            return
        if oid not in self._parents:
            found = self._read(oid)
            if found is None:
                return
            self._parents[oid], time = found
            heapq.heappush(self._queue, (-time, oid))
        self._flags[oid] = known | flags
        if self._flags[oid] & _STALE:
            self._fresh.discard(oid)
        else:
            self._fresh.add(oid)

    def _read(self, oid: str) -> tuple[tuple[str, ...], int] | None:
        """Return the parents and the time of a commit; None where the history of a shallow repository ends."""
        if self._staging.shallow and not self._staging.has(oid):
            return None
        content = self._staging.read(oid)
        self._bytes -= len(content)
        if self._bytes < 0 or len(self._flags) >= _DEPTH:
            raise GitError(f"a history of more than {_DEPTH:,} commits, or {_BYTES >> 20} MiB of them, is not followed")
        parents = list[str]()
        at = _TREE_LINE
        while line := _PARENT.match(content, at):
            parents.append(line[1].decode())
            at = line.end()
        time = _TIME.search(content, at)
        if time is None:
            raise DamagedRepository(f"commit {oid} can not be read")
        return tuple(parents), int(time[1][:_DIGITS])
