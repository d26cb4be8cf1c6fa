"""The commit that a branch, a tag or an id stands for, in a repository that has all its branches and tags.

A commit counts only if a branch or tag contains it, or did so when a mirror kept it. Hosts also serve the commits of
forks and of pull requests by id, and anybody can make those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pygit2

from kardinal.git import ancestry
from kardinal.git.errors import BranchNotFound, CommitNotFound, GitError, InvalidBranchName, RefMoved, TagNotFound
from kardinal.git.history import tagged_commit
from kardinal.git.names import HEADS, branch_of, branch_ref, tag_ref
from kardinal.git.objects import Staging
from kardinal.git.refs import RefStore
from kardinal.processes.threads import off_loop

__all__ = ["Revision", "check_published", "find_revision", "keep_commit"]

_TAGS = "refs/tags/"
_KEPT = "refs/kardinal/kept/"
"""References to commits that were on a branch or tag once, and that a mirror keeps if the host forgets them."""
_ID = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit. `branch`: the default branch if no version was asked for; otherwise empty."""

    commit: str
    branch: str = ""


@off_loop
def find_revision(repository: pygit2.Repository, version: str, *, url: str) -> Revision:
    """Return the commit of a tag, a branch or the id of a commit; of the default branch if `version` is empty.

    A tag comes before a branch of the same name, as in Git. `url` is for errors.
    """
    if not version:
        return _default_branch(repository, url)
    refs = RefStore(repository.path)
    with suppress(InvalidBranchName):
        tag = refs.read(tag_ref(version))
        if tag is not None:
            return Revision(tagged_commit(repository, tag, version))
        branch = refs.read(branch_ref(version))
        if branch is not None:
            return Revision(branch)
    if _ID.fullmatch(version):
        with suppress(KeyError, ValueError, pygit2.GitError):
            commit = str(repository.expand_id(version))
            check_published(repository, commit, url=url)
            return Revision(commit)
    raise CommitNotFound(
        f"{url} has no branch, tag or commit {version[:100]}", remedy="Name one that it has, or push it there"
    )


@off_loop
def check_published(repository: pygit2.Repository, commit: str, *, url: str) -> None:
    """Raise `CommitNotFound` unless a branch or a tag contains a commit."""
    staging = Staging(repository)
    if staging.has(commit):
        tips = dict.fromkeys(_tips(repository))
        if commit in tips or any(ancestry.contains(staging, tip, commit) for tip in tips):
            return
    raise CommitNotFound(
        f"{url} has no commit {commit[:12]} on a branch or tag", remedy="Push the branch that has it, or name another"
    )


@off_loop
def keep_commit(repository: pygit2.Repository, commit: str) -> None:
    """Keep a commit of a branch or tag in a mirror, also after the branch is forced to another commit, or deleted."""
    refs = RefStore(repository.path)
    name = f"{_KEPT}{commit}"
    with suppress(RefMoved):
        if refs.read(name) is None:
            refs.update(name, old=None, new=commit)


def _default_branch(repository: pygit2.Repository, url: str) -> Revision:
    try:
        head = repository.lookup_reference("HEAD").target
    except (KeyError, pygit2.GitError):
        head = ""
    name = head if isinstance(head, str) else ""
    commit = RefStore(repository.path).read(name) if name.startswith(HEADS) else None
    if commit is None:
        raise BranchNotFound(f"{url} has no default branch with a commit", remedy="Push a commit, or name a version")
    return Revision(commit, branch_of(name))


def _tips(repository: pygit2.Repository) -> Iterator[str]:
    """Yield the commits that are kept, those of all branches, and then those of all tags."""
    refs = RefStore(repository.path)
    yield from refs.list(_KEPT).values()
    yield from refs.list(HEADS).values()
    for name, oid in refs.list(_TAGS).items():
        with suppress(GitError, TagNotFound):
            yield tagged_commit(repository, oid, name.removeprefix(_TAGS))
