"""The values that this package returns; they may be passed between threads and do not depend on an open repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["BranchSubscription", "ChangedFile", "Commit", "EditPlan", "Head", "Landed", "Observer"]


@dataclass(frozen=True, slots=True)
class Head:
    """The commit and the tree of a branch."""

    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file before and after an edit. `before` is None for a new file, `after` for a deleted one."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class EditPlan:
    """The effect that an edit would have on a commit. `tree` is the id of the resulting tree, `diff` is for people."""

    tree: str
    changes: list[ChangedFile]
    diff: str


@dataclass(frozen=True, slots=True)
class Landed:
    """An edit that is on its branch.

    `adopted`: the commit was there before and was recognised by its trailers. `shared`: others have added commits to
    the branch of a proposal, and `commit` is its head. `changed` is False if the branch had the content already; then
    no commit was created, and `commit` is the head of the branch.
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

    def carries(self, trailers: Mapping[str, str]) -> bool:
        """Return whether the message has all of `trailers`; False for a commit without trailers."""
        return bool(self.trailers) and trailers.items() <= self.trailers.items()


class BranchSubscription(Protocol):
    """A registration of a callback that lasts until it is closed."""

    def close(self) -> None: ...


Observer = Callable[[str, float, str], None]
"""Called as (operation, seconds, outcome) after each operation; outcome is `ok` or the name of the error class."""
