"""One repository, as the rest of kardinal sees it.

Reading always sees the present state: of a local repository directly, of a remote one after a fetch that concurrent
callers share. Writing goes through one writer per branch and is safe to repeat, because a commit is recognised by its
trailers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from kardinal.clock import Clock
from kardinal.git import merging, proposing
from kardinal.git.backend import Backend, converge, mended, require_tip
from kardinal.git.diff import unified
from kardinal.git.differences import differences
from kardinal.git.discarding import OwnCommit, discard
from kardinal.git.errors import CommitNotFound, GitError, TagNotFound
from kardinal.git.history import History, contains, includes, tagged_commit
from kardinal.git.inputs import open_input
from kardinal.git.landing import PlannedCommit
from kardinal.git.local import LocalBackend
from kardinal.git.names import branch_ref, tag_ref
from kardinal.git.objects import Signer, Staging
from kardinal.git.references import References
from kardinal.git.revisions import Revision, check_published, find_revision, keep_commit
from kardinal.git.runner import GitRunner
from kardinal.git.tree import TreeView, apply
from kardinal.git.trees import TreeStore
from kardinal.git.turns import BranchTurns
from kardinal.git.values import BranchSubscription, ChangedFile, Commit, EditPlan, Head, Landed, Observer
from kardinal.git.watcher import RefWatcher
from kardinal.git.writer import BranchWriter
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.differences import FileChange, Move
from kardinal.tree.edit import Edit, Tree, split_path

__all__ = ["NO_COMMIT", "Repository"]

NO_COMMIT = "0" * 40
"""The id that Git uses for the commit of a branch that does not exist."""

T = TypeVar("T")


class Repository:
    """A Git repository by URL."""

    def __init__(self, backend: Backend, *, runner: GitRunner, clock: Clock, observer: Observer) -> None:
        self._backend = backend
        self._clock = clock
        self._observer = observer
        self._history = History()
        self._turns = BranchTurns()
        self._writers: dict[str, BranchWriter] = {}
        self._watcher: RefWatcher | None = None
        self._references: References | None = None
        if isinstance(backend, LocalBackend):
            self._watcher = RefWatcher(backend.place, runner=runner, clock=clock)
            self._references = References(backend)

    @property
    def url(self) -> str:
        """The URL without credentials, which may be shown."""
        return self._backend.url.text

    @property
    def local(self) -> bool:
        """Return whether the repository is on this machine, where it can be watched and keep records."""
        return self._references is not None

    @property
    def references(self) -> References:
        """The references of a local repository."""
        if self._references is None:
            raise self._only_local("keep records")
        return self._references

    async def head(self, branch: str) -> Head:
        """Return the present commit and tree of `branch`."""
        self._use(branch)

        def read() -> Head:
            staging = self._staging()
            tip = require_tip(self._backend, branch)
            return Head(commit=tip, tree=self._history.commit(staging, tip).tree)

        async with self._observed("head"):
            return await self._now(read)

    async def tagged(self, tag: str) -> str:
        """Return the present commit of a tag."""
        ref = tag_ref(tag)
        self._backend.use(ref)

        def read() -> str:
            found = self._backend.tip(ref)
            if found is None:
                raise TagNotFound(f"{self.url} has no tag {tag}", remedy="Push it, or name another tag or a branch")
            return tagged_commit(self._backend.open(), found, tag)

        async with self._observed("tagged"):
            return await self._now(read)

    async def require_commit(self, branch: str, commit: str) -> None:
        """Raise `CommitNotFound` if a commit is not on `branch`.

        The repository may have it nevertheless, because forks and pull requests add other commits.
        """
        if not await self.contains(branch, commit):
            raise CommitNotFound(
                f"{self.url} has no commit {commit[:12]} on branch {branch}", remedy="Name the branch that it is on"
            )

    async def input(self, commit: str, *, name: str, branch: str | None, tag: str | None) -> Callable[[Tree], Tree]:
        """Return a function that returns the tree of a commit for an edit of another tree.

        `branch` or `tag` is the place at which the commit was found. The commit can be read even if they have moved
        since, as long as the host serves it.
        """
        self._backend.use(tag_ref(tag) if tag else branch_ref(branch or ""))
        async with self._observed("input"):
            tree = await self._at(commit, lambda _, tree: tree)
        return partial(open_input, self._backend, tree, name)

    async def plan(self, commit: str, edit: Edit) -> EditPlan:
        """Return the changes that `edit` would make to `commit`; nothing is written."""

        def compute(staging: Staging, before: str) -> EditPlan:
            view = TreeView.for_edit(staging, before)
            files = edit(view)
            after = apply(staging, before, files)
            found = [
                ChangedFile("/".join(split_path(path)), view.read(path), content) for path, content in files.items()
            ]
            changes = [change for change in found if change.before != change.after]
            return EditPlan(tree=after, changes=changes, diff=unified(changes))

        def compute_on_nothing() -> EditPlan:
            staging = self._staging()
            return compute(staging, staging.add_tree({}))

        async with self._observed("plan"):
            if commit == NO_COMMIT:
                await self._backend.prepare()
                return await mended(self._backend, compute_on_nothing)
            return await self._at(commit, compute)

    async def source(self, branch: str, commit: str) -> Callable[[Tree], Tree]:
        """Return a function that returns the tree of a commit of `branch` for an edit of another branch."""
        self._use(branch)

        def look() -> str:
            if not contains(self._backend.open(), require_tip(self._backend, branch), commit):
                raise CommitNotFound(f"{self.url} has no commit {commit[:12]} on branch {branch} any more")
            return self._history.commit(self._staging(), commit).tree

        async with self._observed("source"):
            tree = await self._now(look)
        return partial(_beside, tree)

    async def ensure_branch(self, branch: str, message: CommitMessage) -> None:
        """Create a branch without files and with a history of its own, if it does not exist."""
        self._use(branch)

        def make() -> None:
            if self._backend.tip(branch_ref(branch)) is not None:
                return
            staging = self._staging()
            new = staging.add_commit(
                tree=staging.add_tree({}), parent=None, message=str(message), time=self._clock.now()
            )
            self._backend.publish(branch_ref(branch), old=None, new=new, staging=staging)

        async with self._observed("ensure-branch"):
            await converge(self._backend, make)

    async def find(self, branch: str, trailers: Mapping[str, str], *, since: str | None = None) -> str | None:
        """Return the nearest commit of `branch` with all `trailers`, at most `FIND_DEPTH` commits back."""
        self._use(branch)

        def search() -> str | None:
            tip = require_tip(self._backend, branch)
            found = self._history.find(self._staging(), tip, trailers, since=since)
            return found.id if found else None

        async with self._observed("find"):
            return await self._now(search)

    async def land(self, branch: str, edit: Edit, message: CommitMessage, *, signer: Signer | None = None) -> Landed:
        """Put `edit` on `branch` as one commit, unless a commit with these trailers, or the content, is there."""
        self._use(branch)
        writer = self._writers.get(branch)
        if writer is None:
            writer = self._writers[branch] = BranchWriter(self._backend, self._history, branch, clock=self._clock)
        async with self._observed("land"):
            return await writer.land(PlannedCommit(edit, message, signer))

    async def propose(
        self,
        branch: str,
        *,
        base: str,
        edit: Edit,
        message: CommitMessage,
        signer: Signer | None = None,
        ours: str | None = None,
    ) -> Landed:
        """Put `edit` on a branch of its own, created from the head of `base`; see `proposing`.

        `ours`: the recorded commit of an earlier attempt.
        """
        self._use(branch, base)
        planned = PlannedCommit(edit, message, signer)
        time = self._clock.now()
        operation = partial(proposing.propose, base=base, planned=planned, time=time, ours=ours)
        async with self._observed("propose"):
            return await self._in_turn(branch, operation)

    async def discard(self, branch: str, *, base: str, own: OwnCommit) -> bool:
        """Remove the branch of a proposal unless others have added to it, recognising its commit without its edit."""
        self._use(branch, base)
        async with self._observed("discard"):
            return await self._in_turn(branch, partial(discard, base=base, own=own), refresh=True)

    async def conflicts(self, branch: str, *, base: str) -> tuple[str, ...]:
        """Return the files in which `branch` cannot be merged into `base`."""
        self._use(branch, base)
        async with self._observed("conflicts"):
            return await self._now(lambda: merging.conflicting_files(self._backend, self._history, branch, base))

    async def merge(self, branch: str, commit: str) -> Landed:
        """Merge a proposed commit into `branch`: by a fast-forward, or applied again as one commit."""
        self._use(branch)
        async with self._observed("merge"):
            return await converge(
                self._backend, merging.merge, self._backend, self._history, branch, commit, time=self._clock.now()
            )

    async def contains(self, branch: str, commit: str) -> bool:
        """Return whether `commit` is on `branch`."""
        self._use(branch)

        def look() -> bool:
            return contains(self._backend.open(), require_tip(self._backend, branch), commit)

        async with self._observed("contains"):
            return await self._now(look)

    async def includes(self, branch: str, revision: str, commit: str) -> bool | None:
        """Return whether `commit` is `revision` or an ancestor of it; None if one is not in the repository.

        `branch` is fetched only if one of the commits is unknown.
        """
        self._use(branch)

        def look() -> bool | None:
            return includes(self._backend.open(), revision, commit)

        async with self._observed("includes"):
            known = await mended(self._backend, look)
            return known if known is not None else await self._now(look)

    async def read(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file at a commit."""

        return await self.inspect(commit, lambda tree: tree.read(path))

    async def inspect(self, commit: str, function: Callable[[TreeView], T]) -> T:
        """Return the result of `function`, which only reads, on the files at a commit."""
        async with self._observed("inspect"):
            return await self._at(commit, lambda staging, tree: function(TreeView(staging, tree)))

    async def examine(self, commit: str, function: Callable[[TreeView], T]) -> T:
        """Return the result of `function`, which only reads, on the files at a commit, with the limits of an edit."""
        async with self._observed("examine"):
            return await self._at(commit, lambda staging, tree: function(TreeView.for_edit(staging, tree)))

    async def extract(self, commit: str, path: str, store: TreeStore) -> tuple[str, Path]:
        """Return the id of the tree of a commit below `path`, and a directory with its files.

        Raises `CommitNotFound` for a commit that is on no branch or tag, and `GitError` for a path without a directory.
        """

        def look() -> tuple[str, Path]:
            check_published(self._backend.open(), commit, url=self.url)
            staging = self._staging()
            view = TreeView(staging, self._history.commit(staging, commit).tree)
            tree = view.identify(path) if view.is_dir(path) else None
            if tree is None:
                raise GitError(f"{self.url} has no directory {path} at {commit[:12]}")
            return tree, store.extract(staging, tree)

        async with self._observed("extract"):
            return await mended(self._backend, look)

    async def keep(self, commit: str) -> None:
        """Keep a commit, which has to be on a branch or tag, also if the host forgets it."""
        await mended(self._backend, lambda: keep_commit(self._backend.open(), commit))

    async def revision(self, version: str) -> Revision:
        """Return the commit of a branch, tag or id; of the default branch if `version` is empty.

        The repository has to have all its branches and tags.
        """
        async with self._observed("revision"):
            return await mended(self._backend, lambda: find_revision(self._backend.open(), version, url=self.url))

    async def differences(self, branch: str, moves: Sequence[Move], directory: str) -> Sequence[Sequence[FileChange]]:
        """Return the files that differ below `directory`, for each of `moves` between commits of `branch`."""
        self._use(branch)

        def look() -> Sequence[Sequence[FileChange]]:
            tip = require_tip(self._backend, branch)
            return differences(self._backend.open(), self._history, tip, moves, directory)

        async with self._observed("differences"):
            return await self._now(look)

    async def log(self, branch: str, limit: int) -> list[Commit]:
        """Return the commits of `branch` from its head back, at most `limit`."""
        self._use(branch)

        def walk() -> list[Commit]:
            return list(self._history.walk(self._staging(), require_tip(self._backend, branch), limit=limit))

        async with self._observed("log"):
            return await self._now(walk)

    async def delete_branch(self, branch: str) -> None:
        """Delete `branch`, wherever it points; it need not exist."""
        self._use(branch)

        def remove() -> None:
            tip = self._backend.tip(branch_ref(branch))
            if tip is not None:
                self._backend.remove(branch_ref(branch), old=tip)

        async with self._observed("delete"):
            await self._backend.refresh()
            await converge(self._backend, remove)

    async def check_push(self, branch: str) -> None:
        """Check whether commits may be put on `branch`, without putting any; raises the same errors as `land`."""

        def ask() -> None:
            self._backend.try_push(branch_ref(branch), at=require_tip(self._backend, branch))

        async with self._observed("check-push"):
            await self._backend.refresh()
            await converge(self._backend, ask)

    def watch(self, callback: Callable[[], None]) -> BranchSubscription:
        """Call `callback` when a reference of this local repository may have moved, and once at the start."""
        if self._watcher is None:
            raise self._only_local("be watched")
        return self._watcher.subscribe(callback)

    def hold(self) -> Callable[[], None]:
        """Keep the mirror until the returned function is called, while several mirrors are read in turn."""
        return self._backend.hold()

    async def close(self) -> None:
        """Finish the current operations."""
        await self._backend.close()
        await self._turns.close()
        for writer in self._writers.values():
            await writer.close()
        if self._watcher is not None:
            await self._watcher.close()

    async def _in_turn(self, branch: str, operation: Callable[..., T], *, refresh: bool = False) -> T:
        """Run an operation that moves the branch of a proposal, after the earlier operations on that branch."""

        async def run() -> T:
            if refresh:
                await self._backend.refresh()
            return await converge(self._backend, operation, self._backend, self._history, branch)

        return await self._turns.take(branch, run)

    async def _now(self, function: Callable[[], T]) -> T:
        """Run a function that reads on the present state of the repository."""
        await self._backend.refresh()
        return await mended(self._backend, function)

    async def _at(self, commit: str, function: Callable[[Staging, str], T]) -> T:
        """Run a function on the tree of a commit; fetch only if the commit is unknown."""

        def look() -> T:
            staging = self._staging()
            if not staging.has(commit):
                raise CommitNotFound(f"{self.url} has no commit {commit[:12]}")
            return function(staging, self._history.commit(staging, commit).tree)

        await self._backend.prepare()
        try:
            return await mended(self._backend, look)
        except CommitNotFound:
            await self._backend.refresh(everything=True)
            return await mended(self._backend, look)

    def _use(self, *branches: str) -> None:
        self._backend.use(*map(branch_ref, branches))

    def _staging(self) -> Staging:
        return Staging(self._backend.open())

    def _only_local(self, what: str) -> GitError:
        return GitError(f"{self.url} is not on this machine and can not {what}")

    @asynccontextmanager
    async def _observed(self, operation: str) -> AsyncIterator[None]:
        started = self._clock.monotonic()
        outcome = "ok"
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observer(operation, self._clock.monotonic() - started, outcome)


def _beside(wanted: str, tree: Tree) -> Tree:
    if not isinstance(tree, TreeView):
        raise TypeError("only a tree of this repository has others beside it")
    return tree.beside(wanted)
