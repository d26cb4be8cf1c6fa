"""Which commits of a configuration repository an environment has, and how it gets from there to another one.

What has landed stands in the trailers of the environment's own branch, so it is as durable as what landed, and a
program that starts anew knows it. It is read as a stack: a commit that is promoted again takes away all that landed
after it, which is how an older commit is gone back to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from kardinal.api import Bundle, PromotionStep, names
from kardinal.api.pipeline import MergeStrategy
from kardinal.api.repository_url import InvalidRepositoryURL, repository_key

__all__ = ["FileChange", "Move", "config_trailers", "landed_commits", "moves"]


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


def _is(key: str, url: str) -> bool:
    try:
        return repository_key(url) == key
    except InvalidRepositoryURL:
        return False
