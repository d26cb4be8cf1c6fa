"""The values that the Git room returns: they may cross threads and outlive the repository they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

__all__ = ["Change", "Commit", "Head", "Landed", "Observer", "Plan", "Subscription"]


@dataclass(frozen=True, slots=True)
class Head:
    """The commit and the tree of a branch."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class Change:
    """One file as an edit finds and leaves it; `before` is None for a new file, `after` for one that is deleted."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The effect that an edit would have on a commit. `tree` is the id the result would have, `diff` is for people."""

    tree: str
    changes: list[Change]
    diff: str


@dataclass(frozen=True, slots=True)
class Landed:
    """An edit that is on its branch.

    `adopted`: the commit was there before, known by its trailers. `shared`: others have added commits to the branch of
    a proposal, whose head `commit` is. `changed` is False when the branch already had the content, in which case no
    commit was made and `commit` is the branch's head.
    """

    commit: str
    tree: str
    changed: bool
    adopted: bool
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, without its content."""

    id: str
    tree: str
    parents: tuple[str, ...]
    subject: str
    trailers: Mapping[str, str]
    author: str
    committer: str
    committed_at: datetime

    def carries(self, trailers: Mapping[str, str]) -> bool:
        """Return whether every one of `trailers` stands in the message."""
        return bool(self.trailers) and trailers.items() <= self.trailers.items()


class Subscription(Protocol):
    """Something that calls back until it is closed."""

    def close(self) -> None: ...


Observer = Callable[[str, float, str], None]
"""Called as (operation, seconds, outcome) after each operation; outcome is `ok` or the name of the error."""
