"""Merges of the base into the branch of a proposal, such as "Update branch" creates. Runs on a thread.

Such a commit adds nothing that is not on the branch or on the base: its first parent is the previous head of the
branch, its second parent is on the base, and its tree is exactly the result of merging the two. It is recognised by
that alone, because the names of author and committer can be anything. A merge in which a person resolved a conflict
counts as a commit of that person.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pygit2

from kardinal.git.ancestry import merge_base
from kardinal.git.history import History, contains
from kardinal.git.merging_trees import merge_trees
from kardinal.git.objects import Staging
from kardinal.git.values import Commit
from kardinal.processes.threads import off_loop

__all__ = ["Proposed", "below_base_merges"]

_MERGES = 100
"""The most merges that are examined; a branch with more counts as one that others have written to."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """The commit of a branch below the merges of its base, with the ids from the tip to it.

    `base_tree` is the tree of the base that was merged last, or else of the commit's parent.
    """

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
    """Find the commit below the merges of `base` at the tip of a branch.

    A commit whose message has one of `trailers` does not count as a merge.
    """
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
