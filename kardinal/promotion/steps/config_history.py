"""The commits of a configuration repository that an environment has, and the way from there to another commit.

The commits that have landed are read from the trailers on the environment's own branch. So this knowledge is as durable
as the commits, and survives a restart. They form a stack: promoting a commit of the stack again removes all commits
that landed after it, which is how to go back to an older commit.

A rendered branch has a record instead (`branch_layout`), because every promotion applies the whole stack again, onto
the present source. Going back there needs no undoing: the later commits are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated
from urllib.parse import quote

from pydantic import AfterValidator, Field

from kardinal.models.base import Model, Url
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import MergeStrategy
from kardinal.promotion.steps.step_paths import inside
from kardinal.tree.differences import Move
from kardinal.tree.git_names import TRAILER_CONFIG
from kardinal.tree.repository_url import InvalidRepositoryURL, repository_key

__all__ = [
    "RecordedCommit",
    "config_trailers",
    "landed_commits",
    "moves",
    "recorded_moves",
    "stacked",
]


class RecordedCommit(Model):
    """A commit that a rendered branch has: its repository and directory, and the strategy by which it was merged."""

    repository: Url
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
    directory: Annotated[str, Field(max_length=512), AfterValidator(inside)] = ""
    strategy: MergeStrategy = "cherry-pick"


def config_trailers(step: PromotionStep, bundle: Bundle) -> dict[str, str]:
    """Return the trailer that records the configuration commit of a promotion; empty if the Bundle has none."""
    commit = bundle.spec.artifacts.git_commit
    if commit is None:
        return {}
    return {TRAILER_CONFIG: f"{commit.sha} {commit.repository} {quote(step.spec.path)}"}


def landed_commits(trailers: Iterable[Mapping[str, str]], *, repository: str, path: str) -> list[str]:
    """Return the commits of `repository` that the directory `path` has, oldest first.

    `trailers` are the trailers of the commits on the environment's branch, newest first.
    """
    key = repository_key(repository)
    place = quote(path)
    stack: list[str] = []
    for line in reversed([found[TRAILER_CONFIG] for found in trailers if TRAILER_CONFIG in found]):
        commit, _, rest = line.partition(" ")
        url, _, where = rest.partition(" ")
        if where != place or not _is(key, url):
            continue
        stack = [*stack[: stack.index(commit)], commit] if commit in stack else [*stack, commit]
    return stack


def moves(commit: str, landed: list[str], strategy: MergeStrategy) -> list[Move]:
    """Return the differences to apply, in order, so that a directory with the commits `landed` gets to `commit`.

    The strategy `overlay` applies the difference to the last landed commit at once. `cherry-pick` applies the changes
    of `commit` alone, or, if `commit` has landed already, takes back the commits that landed after it. If `commit` is
    the last landed one, it is applied once more, because its changes may have been reverted by hand.
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
    """Return the commits that a rendered branch has after `commit` is promoted to it."""
    same = [(one.commit, one.directory) == (commit.commit, commit.directory) for one in recorded]
    return (*recorded[: same.index(True) if any(same) else len(recorded)], commit)


def recorded_moves(recorded: Sequence[RecordedCommit]) -> Iterator[tuple[RecordedCommit, Move]]:
    """Yield each recorded commit with the move that applies it to the source, in order."""
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
