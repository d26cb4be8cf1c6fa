"""Which commits of a configuration repository an environment has, and how it gets from there to another one.

What has landed stands in the trailers of the environment's own branch, so it is as durable as what landed, and a
program that starts anew knows it. It is read as a stack: a commit that is promoted again takes away all that landed
after it, which is how an older commit is gone back to.

A branch that is rendered has a record instead (`branch_layout`), because every promotion brings all of the stack again,
onto the source as it is now. Going back to a commit undoes nothing there: what landed after it is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator, Field

from kardinal.api import Bundle, PromotionStep, names
from kardinal.api.base import Model, Url
from kardinal.api.pipeline import MergeStrategy
from kardinal.api.repository_url import InvalidRepositoryURL, repository_key
from kardinal.steps.step_paths import inside

__all__ = [
    "FileChange",
    "Move",
    "RecordedCommit",
    "config_trailers",
    "landed_commits",
    "moves",
    "recorded_moves",
    "stacked",
]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs between two commits; None stands for a commit that does not have it."""

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Move:
    """The difference between two commits, as revisions: `<commit>^` is the first parent, the empty tree without one."""

    before: str
    after: str


class RecordedCommit(Model):
    """A commit that a rendered branch has: of which directory of which repository, and how it was brought."""

    repository: Url
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    directory: Annotated[str, Field(max_length=512), AfterValidator(inside)] = ""
    strategy: MergeStrategy = "cherry-pick"


def config_trailers(step: PromotionStep, bundle: Bundle) -> dict[str, str]:
    """Return the trailer by which the commit of a configuration is known to have landed; none without such a commit."""
    commit = bundle.spec.artifacts.git_commit
    if commit is None:
        return {}
    return {names.TRAILER_CONFIG: f"{commit.sha} {commit.repository} {quote(step.spec.path)}"}


def landed_commits(trailers: Iterable[Mapping[str, str]], *, repository: str, path: str) -> list[str]:
    """Return the commits of `repository` that the directory `path` has, the last one last.

    `trailers` are those of the commits on the environment's branch, newest first.
    """
    key, place = repository_key(repository), quote(path)
    stack: list[str] = []
    for line in reversed([found[names.TRAILER_CONFIG] for found in trailers if names.TRAILER_CONFIG in found]):
        commit, _, rest = line.partition(" ")
        url, _, where = rest.partition(" ")
        if where != place or not _is(key, url):
            continue
        stack = [*stack[: stack.index(commit)], commit] if commit in stack else [*stack, commit]
    return stack


def moves(commit: str, landed: list[str], strategy: MergeStrategy) -> list[Move]:
    """Return what brings a directory that has `landed` to `commit`, in this order.

    The commit that landed last is brought once more, because its changes may have been taken out by hand.
    """
    if not landed or landed[-1] == commit:
        return [Move(f"{commit}^", commit)]
    if strategy == "overlay":
        return [Move(landed[-1], commit)]
    if commit in landed:
        later = landed[landed.index(commit) + 1 :]
        return [Move(undone, f"{undone}^") for undone in reversed(later)]
    return [Move(f"{commit}^", commit)]


def stacked(recorded: Sequence[RecordedCommit], commit: RecordedCommit) -> tuple[RecordedCommit, ...]:
    """Return what a branch has once `commit` is promoted to it."""
    same = [(one.commit, one.directory) == (commit.commit, commit.directory) for one in recorded]
    return (*recorded[: same.index(True) if any(same) else len(recorded)], commit)


def recorded_moves(recorded: Sequence[RecordedCommit]) -> Iterator[tuple[RecordedCommit, Move]]:
    """Yield what brings the source of a branch to what it has, in this order."""
    before = ""
    for one in recorded:
        follows = one.strategy == "overlay" and before not in ("", one.commit)
        yield one, Move(before if follows else f"{one.commit}^", one.commit)
        before = one.commit


def _is(key: str, url: str) -> bool:
    try:
        return repository_key(url) == key
    except InvalidRepositoryURL:
        return False
