"""A bare repository whose merges are real: merge commits, squashes, rebases, conflicts.

What a host does to a repository when a pull request is merged is done here with libgit2, so a test sees in Git what it
would see on the host: which commit landed, what its parents are, and that a proposal in conflict can not be merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pygit2

__all__ = ["Conflict", "HeadMoved", "HostedRepository"]

_MODE = pygit2.enums.FileMode.BLOB
_EPOCH = 1_767_690_000
"""Seconds of the first commit; each later one is a second younger, so that no two have equal names by accident."""


class Conflict(Exception):
    """Both sides changed the same lines."""


class HeadMoved(Exception):
    """A branch is not where the caller believes."""


@dataclass
class HostedRepository:
    """The bare repository of one project on a fake host."""

    path: Path
    commits_made: int = 0

    @classmethod
    def at(cls, path: Path) -> HostedRepository:
        """Return the repository at a path, which is made if need be, ready to be pushed to over HTTP."""
        pygit2.init_repository(str(path), bare=True, initial_head="main").free()
        hosted = cls(path)
        with hosted._open() as git:
            git.config["http.receivepack"] = True
            git.config["uploadpack.allowFilter"] = True
            git.config["receive.denyDeleteCurrent"] = "ignore"
        return hosted

    def _open(self) -> _Opened:
        return _Opened(self.path)

    def head(self, branch: str) -> str | None:
        """Return the commit of a branch, or None where there is no such branch."""
        with self._open() as git:
            reference = git.references.get(f"refs/heads/{branch}")
            return None if reference is None else str(reference.target)

    def exists(self, commit: str) -> bool:
        with self._open() as git:
            return commit in git

    def read(self, branch: str, path: str) -> str | None:
        """Return a file of a branch."""
        with self._open() as git:
            tree = git.references[f"refs/heads/{branch}"].peel(pygit2.Tree)
            return tree[path].peel(pygit2.Blob).data.decode() if path in tree else None

    def message(self, commit: str) -> str:
        with self._open() as git:
            return str(git[commit].peel(pygit2.Commit).message)

    def committed_at(self, commit: str) -> datetime:
        with self._open() as git:
            return datetime.fromtimestamp(git[commit].peel(pygit2.Commit).commit_time, UTC)

    def parents(self, commit: str) -> list[str]:
        with self._open() as git:
            return [str(parent) for parent in git[commit].peel(pygit2.Commit).parent_ids]

    def commit(
        self, branch: str, files: Mapping[str, str | None], *, message: str = "Change", start: str | None = None
    ) -> str:
        """Commit files (None deletes one) to a branch, which is made from branch `start` if need be."""
        with self._open() as git:
            reference = git.references.get(f"refs/heads/{branch}")
            if reference is None and start is not None:
                reference = git.references[f"refs/heads/{start}"]
            parents = [] if reference is None else [reference.peel(pygit2.Commit).id]
            index = pygit2.Index()
            if reference is not None:
                index.read_tree(reference.peel(pygit2.Tree))
            for path, content in files.items():
                if content is None:
                    index.remove(path)
                else:
                    index.add(pygit2.IndexEntry(path, git.create_blob(content.encode()), _MODE))
            made = self._make(git, index.write_tree(git), message, parents, author="person")
            git.references.create(f"refs/heads/{branch}", made, force=True)
            return str(made)

    def branches(self) -> dict[str, str]:
        """Return the commit of each branch."""
        with self._open() as git:
            prefix = "refs/heads/"
            return {
                name.removeprefix(prefix): str(git.references[name].target)
                for name in git.references
                if name.startswith(prefix)
            }

    def restore(self, branches: dict[str, str]) -> None:
        """Put all branches back to what they were."""
        for branch in self.branches().keys() - branches.keys():
            self.delete(branch)
        for branch, commit in branches.items():
            self.point(branch, commit)

    def delete(self, branch: str) -> None:
        with self._open() as git:
            git.references.delete(f"refs/heads/{branch}")

    def point(self, branch: str, commit: str) -> None:
        """Move a branch without asking what it was."""
        with self._open() as git:
            git.references.create(f"refs/heads/{branch}", commit, force=True)

    def ahead(self, base: str, head: str) -> int:
        """Return how many commits branch `head` has that branch `base` has not."""
        with self._open() as git:
            return int(git.ahead_behind(_tip(git, head), _tip(git, base))[0])

    def log(self, base: str, head: str) -> list[dict[str, str]]:
        """Return the commits that branch `head` has and branch `base` has not, newest first."""
        with self._open() as git:
            walker = git.walk(_tip(git, head))
            walker.hide(_tip(git, base))
            return [
                {
                    "id": str(commit.id),
                    "message": commit.message,
                    "author_email": commit.author.email,
                    "authored_date": str(commit.author.time),
                }
                for commit in walker
            ]

    def is_ancestor(self, commit: str, descendant: str) -> bool:
        with self._open() as git:
            return commit == descendant or bool(git.descendant_of(descendant, commit))

    def changed_paths(self, base: str, head: str) -> list[str]:
        """Return the paths that a pull request from `head` into `base` shows."""
        with self._open() as git:
            theirs = _tip(git, head)
            diff = git.diff(git.merge_base(_tip(git, base), theirs), theirs)
            return [delta.new_file.path for delta in diff.deltas]

    def compare(self, base: str, commit: str) -> list[tuple[str, str]]:
        """Return the old and the new path of each file that a commit has changed since it left branch `base`."""
        with self._open() as git:
            diff = git.diff(git.merge_base(_tip(git, base), commit), commit)
            diff.find_similar()
            return [(delta.old_file.path, delta.new_file.path) for delta in diff.deltas]

    def mergeable(self, base: str, head: str) -> bool:
        with self._open() as git:
            try:
                _merged_tree(git, _tip(git, base), _tip(git, head))
            except Conflict:
                return False
            return True

    def merge(self, base: str, head: str, *, message: str, fast_forward: bool = False) -> str:
        """Merge with a merge commit, or by moving the branch where that is asked for and possible."""

        def made(git: pygit2.Repository, ours: pygit2.Oid, theirs: pygit2.Oid) -> pygit2.Oid:
            if fast_forward:
                if ours != theirs and not git.descendant_of(theirs, ours):
                    raise Conflict
                return theirs
            return self._make(git, _merged_tree(git, ours, theirs), message, [ours, theirs])

        return self._land(base, head, made)

    def squash(self, base: str, head: str, *, message: str) -> str:
        """Merge as one commit on the base; return it."""
        return self._land(
            base,
            head,
            lambda git, ours, theirs: self._make(git, _merged_tree(git, ours, theirs), message, [ours]),
        )

    def squashed(self, base: str, head: str, *, message: str) -> str:
        """Make the commit of a squash without moving a branch."""
        with self._open() as git:
            ours = _tip(git, base)
            theirs = _tip(git, head)
            ancestor = git.merge_base(ours, theirs)
            return str(self._make(git, git[theirs].peel(pygit2.Commit).tree_id, message, [ancestor]))

    def rebase(self, base: str, head: str) -> str:
        """Land the commits of the proposal one by one on the base; return the last."""
        return self._land(base, head, self._rebased)

    def rebase_branch(self, base: str, head: str) -> str:
        """Rebase the proposal's own branch onto the base, as a host does on demand."""
        with self._open() as git:
            made = self._rebased(git, _tip(git, base), _tip(git, head))
            git.references.create(f"refs/heads/{head}", made, force=True)
            return str(made)

    def _rebased(self, git: pygit2.Repository, ours: pygit2.Oid, theirs: pygit2.Oid) -> pygit2.Oid:
        ancestor = git.merge_base(ours, theirs)
        tip = ours
        walker = git.walk(theirs, pygit2.enums.SortMode.TOPOLOGICAL | pygit2.enums.SortMode.REVERSE)
        walker.hide(ancestor)
        for commit in walker:
            parent = commit.parents[0]
            index = git.merge_trees(parent.tree, git[tip].peel(pygit2.Tree), commit.tree)
            if index.conflicts:
                raise Conflict
            committer = self._signature("host")
            tip = git.create_commit(None, commit.author, committer, commit.message, index.write_tree(git), [tip])
        return tip

    def _land(
        self, base: str, head: str, made: Callable[[pygit2.Repository, pygit2.Oid, pygit2.Oid], pygit2.Oid]
    ) -> str:
        with self._open() as git:
            landed = made(git, _tip(git, base), _tip(git, head))
            git.references[f"refs/heads/{base}"].set_target(landed)
            return str(landed)

    def _make(
        self,
        git: pygit2.Repository,
        tree: pygit2.Oid,
        message: str,
        parents: list[pygit2.Oid],
        *,
        author: str = "host",
    ) -> pygit2.Oid:
        signature = self._signature(author)
        return git.create_commit(None, signature, signature, message, tree, parents)

    def _signature(self, name: str) -> pygit2.Signature:
        self.commits_made += 1
        return pygit2.Signature(name, f"{name}@host.example", _EPOCH + self.commits_made, 0)


class _Opened:
    """An open repository that is closed again, so that no descriptor outlives a test."""

    def __init__(self, path: Path) -> None:
        self._git = pygit2.Repository(str(path))

    def __enter__(self) -> pygit2.Repository:
        return self._git

    def __exit__(self, *_: object) -> None:
        self._git.free()


def _tip(git: pygit2.Repository, branch: str) -> pygit2.Oid:
    return git.references[f"refs/heads/{branch}"].peel(pygit2.Commit).id


def _merged_tree(git: pygit2.Repository, ours: pygit2.Oid, theirs: pygit2.Oid) -> pygit2.Oid:
    ancestor = git.merge_base(ours, theirs)
    if ancestor is None:
        raise Conflict
    index = git.merge_trees(git[ancestor].peel(pygit2.Tree), git[ours].peel(pygit2.Tree), git[theirs].peel(pygit2.Tree))
    if index.conflicts:
        raise Conflict
    return index.write_tree(git)
