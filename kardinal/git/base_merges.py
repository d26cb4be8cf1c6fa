"""Merges of the base into the branch of a proposal, as "Update branch" on a host's page makes them. Runs on a thread.

Such a commit brings nothing that is not on the branch or on the base: its first parent is the branch as it was, its
second one is on the base, and its tree is exactly what merging the two gives. It is known by that alone, because the
names of author and committer can be anything. A merge in which a conflict was resolved is a commit of others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pygit2

from kardinal.git.ancestry import merge_base
from kardinal.git.history import History, contains
from kardinal.git.merging_trees import merge_trees
from kardinal.git.objects import Staging
from kardinal.git.runner import off_loop
from kardinal.git.values import Commit

__all__ = ["Proposed", "below_base_merges"]

_MERGES = 100
"""Merges that are looked through; a branch with more counts as one that others have written to."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The commit of a branch below the merges of its base, all ids from the tip to it, and the tree it stands on."""

    commit: Commit
    ids: Collection[str]
    base_tree: str


@off_loop
def below_base_merges(
    repository: pygit2.Repository,
    history: History,
    staging: Staging,
    tip: str,
    *,
    base: str | None,
    trailers: Collection[str] = (),
) -> Proposed:
    """Look through merges of `base` at the tip of a branch; one whose message has one of `trailers` is none of them."""
    commit = history.commit(staging, tip)
    ids = [tip]
    onto = None
    while base is not None and len(ids) <= _MERGES and _merges_base(repository, history, staging, commit, base):
        if any(name in commit.trailers for name in trailers):
            break
        onto = onto or commit.parents[1]
        commit = history.commit(staging, commit.parents[0])
        ids.append(commit.id)
    onto = onto or next(iter(commit.parents), commit.id)
    return Proposed(commit, ids, history.commit(staging, onto).tree)


def _merges_base(repository: pygit2.Repository, history: History, staging: Staging, commit: Commit, base: str) -> bool:
    """Return whether a commit is the merge of a commit of the base, and nothing else."""
    if len(commit.parents) != 2:
        return False
    ours, theirs = commit.parents
    if not contains(repository, base, theirs):
        return False
    origin = merge_base(staging, ours, theirs)
    if origin is None:
        return False
    merged, conflicts = merge_trees(staging, *(history.commit(staging, one).tree for one in (origin, ours, theirs)))
    return not conflicts and merged == commit.tree
