"""Walk back from the head of a branch, up to a maximum depth.

Commits are immutable, so they are cached once read: after a restart a walk reads the objects of one stretch of history,
and later walks cost a dictionary look-up per commit. Every walk has a maximum depth, because a promotion searches for
its own, recent commit, and a repository with a hundred thousand commits must not make it slow.

The order is by distance from the head, not by timestamp, because timestamps come from many clocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

import pygit2
from pygit2.enums import ObjectType

from kardinal.git import ancestry
from kardinal.git.errors import DamagedRepository, TagNotFound
from kardinal.git.objects import Staging
from kardinal.git.values import Commit
from kardinal.objects.text import cut
from kardinal.processes.threads import off_loop
from kardinal.tree.commit_message import parse_trailers

__all__ = ["FIND_DEPTH", "History", "contains", "includes", "tagged_commit"]

FIND_DEPTH = 1_000
"""The most commits that are searched for a trailer: as many as a very busy repository gets in some minutes."""

_KEPT = 4 * FIND_DEPTH

_OWN_SIZE = 256 << 10
"""The maximum size in bytes of a commit of kardinal; the message of a larger commit is neither examined nor kept."""

_TAGS_OF_TAGS = 8
"""The most tag objects that are followed to a commit."""

_SUBJECT = 200


class History:
    """The recently read commits of one repository."""

    def __init__(self) -> None:
        self._known: dict[str, Commit] = {}

    def commit(self, staging: Staging, oid: str) -> Commit:
        """Return the commit `oid`."""
        known = self._known.get(oid)
        if known is None:
            try:
                known = _parse_commit(oid, staging.read(oid))
            except (KeyError, IndexError, ValueError):
                raise DamagedRepository(f"commit {oid} can not be read") from None
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[oid] = known
        return known

    def walk(
        self, staging: Staging, tip: str, *, since: str | None = None, limit: int = FIND_DEPTH
    ) -> Iterator[Commit]:
        """Yield commits from `tip` back, nearest first, without `since` and the commits behind it."""
        pending = deque([tip])
        seen = {tip, since}
        known = self._known
        while pending and limit > 0:
            oid = pending.popleft()
            if oid == since:
                continue
            commit = known.get(oid)
            if commit is None:
                if staging.shallow and not staging.has(oid):
                    continue
                commit = self.commit(staging, oid)
            yield commit
            limit -= 1
            for parent in commit.parents:
                if parent not in seen:
                    seen.add(parent)
                    pending.append(parent)

    def find(
        self, staging: Staging, tip: str, trailers: Mapping[str, str], *, since: str | None = None
    ) -> Commit | None:
        """Return the nearest commit that has all of `trailers`."""
        if not trailers:
            return None
        return next((commit for commit in self.walk(staging, tip, since=since) if commit.carries(trailers)), None)


@off_loop
def contains(repository: pygit2.Repository, tip: str, oid: str) -> bool:
    """Return whether `oid` is `tip` or one of its ancestors."""
    staging = Staging(repository)
    return tip == oid or (staging.has(oid) and ancestry.contains(staging, tip, oid))


@off_loop
def tagged_commit(repository: pygit2.Repository, oid: str, tag: str) -> str:
    """Return the commit of a tag whose reference is at `oid`, which is a commit or a tag object."""
    staging = Staging(repository)
    try:
        for _ in range(_TAGS_OF_TAGS):
            kind, _ = staging.header(oid)
            if kind == ObjectType.COMMIT:
                return oid
            if kind != ObjectType.TAG:
                break
            oid = staging.read(oid).removeprefix(b"object ")[:40].decode("ascii")
    except (DamagedRepository, ValueError) as error:
        raise DamagedRepository(f"tag {tag} can not be read") from error
    raise TagNotFound(f"tag {tag} stands for no commit", remedy="Name a tag of a commit")


@off_loop
def includes(repository: pygit2.Repository, revision: str, commit: str) -> bool | None:
    """Return whether `commit` is `revision` or one of its ancestors; None if one of them is unknown here."""
    staging = Staging(repository)
    known = all(staging.has(oid) and staging.header(oid)[0] == ObjectType.COMMIT for oid in (revision, commit))
    return contains(repository, revision, commit) if known else None


def _parse_commit(oid: str, data: bytes) -> Commit:
    head, _, text = data[:_OWN_SIZE].decode("utf-8", "replace").partition("\n\n")
    fields: dict[str, list[str]] = {}
    for line in head.splitlines():
        key, _, value = line.partition(" ")
        fields.setdefault(key, []).append(value)
    author, committer = (fields[one][0].rpartition(">")[0] + ">" for one in ("author", "committer"))
    return Commit(
        id=oid,
        tree=fields["tree"][0],
        parents=tuple(fields.get("parent", ())),
        subject=cut(text.strip().partition("\n")[0], _SUBJECT),
        trailers=parse_trailers(text) if len(data) <= _OWN_SIZE else {},
        author=author,
        committer=committer,
    )
