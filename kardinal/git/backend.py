"""The protocol of a repository's backend, so that one set of operations works on local and remote repositories.

Functions that are not asynchronous are called on a thread, except `use`. A change works in the same way in all
backends: read the tip, build on it, and `publish` against the tip that was read. If another writer was faster,
`publish` raises `RefMoved` and changes nothing; the caller refreshes, builds again on the new tip, and publishes that
(`converge`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

import pygit2

from kardinal.git.errors import (
    BranchLocked,
    BranchNotFound,
    DamagedRepository,
    MirrorReplaced,
    ObjectsMissing,
    RefMoved,
    TransientGitError,
)
from kardinal.git.names import branch_of, branch_ref
from kardinal.git.objects import Staging
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["Backend", "Mending", "converge", "mended", "require_tip"]

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 100
"""The most rebuilds of one change.

Each lost race means that another commit landed, so many are normal on a busy branch.
"""

_REFUSALS = 5
"""The most refusals after which the branch had not moved: a lock that is not released, left to the caller's back-off.
"""

_ROUNDS = 200
"""The most fetches for the files of one operation. Each also brings files near the missing one, so a few suffice."""


class Backend(Protocol):
    """One repository, local or remote."""

    url: RepositoryURL

    def use(self, *refs: str) -> None:
        """Name the references that the next operation reads or moves; others need not be known."""
        ...

    async def refresh(self, *, everything: bool = False) -> None:
        """Learn the present commits of the references in use, or of all branches."""
        ...

    async def prepare(self) -> None:
        """Do the same as `refresh`, but only if the references in use have never been learnt."""
        ...

    async def supply(self, ids: frozenset[str]) -> None:
        """Fetch the files that an `ObjectsMissing` names."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the local data of the repository until the returned function is called."""
        ...

    async def repair(self) -> None:
        """Repair the local data after a `DamagedRepository`, as far as that is possible."""
        ...

    async def close(self) -> None:
        """Finish the current operations."""
        ...

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads, and may publish, on a thread."""
        ...

    def open(self) -> pygit2.Repository: ...

    def tip(self, ref: str) -> str | None:
        """Return the commit of a reference, as last learnt; None if the reference does not exist."""
        ...

    def publish(self, ref: str, *, old: str | None, new: str, staging: Staging) -> None:
        """Write the objects of `new` and move `ref` from `old` to it; raises `RefMoved` if it is not at `old`."""
        ...

    def remove(self, ref: str, *, old: str) -> None:
        """Delete `ref` if it is at `old`."""
        ...

    def try_push(self, ref: str, *, at: str) -> None:
        """Check, as far as possible without moving it, whether `ref` may be moved; raises the errors of `publish`."""
        ...


def require_tip(backend: Backend, branch: str) -> str:
    """Return the head of a branch; raises `BranchNotFound` if the branch does not exist."""
    tip = backend.tip(branch_ref(branch))
    if tip is None:
        raise BranchNotFound(
            f"{backend.url.text} has no branch {branch}",
            remedy="Create it with a first commit, or name another branch",
        )
    return tip


async def converge(backend: Backend, attempt: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `attempt` again until no other writer is faster."""
    await backend.prepare()
    refused = 0
    for _ in range(_ATTEMPTS):
        try:
            return await mended(backend, attempt, *args, **kwargs)
        except RefMoved as error:
            moved = error
        await backend.refresh()
        if await backend.run(backend.tip, moved.name) == moved.old:
            refused += 1
            if refused == _REFUSALS:
                break
    if refused and moved.lock:
        raise BranchLocked(branch_of(moved.name), said=moved.said, lock=moved.lock)
    raise TransientGitError(f"{branch_of(moved.name)} can not be moved: others are writing to it all the time")


class Mending:
    """The attempts to make one repository readable for one operation."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._supplied = frozenset[str]()
        self._rounds = 0
        self._repaired = False

    async def after(self, error: DamagedRepository) -> None:
        """Fetch the missing files, or repair the repository; raises `error` if neither can help."""
        missing = error.ids if isinstance(error, ObjectsMissing) else frozenset()
        self._rounds += 1
        if isinstance(error, MirrorReplaced) and self._rounds <= _ROUNDS:
            # The new mirror is fine; it only has to learn the references.
            self._supplied = frozenset()
            await self._backend.refresh()
            return
        try:
            if missing <= self._supplied or self._rounds > _ROUNDS:
                raise error
            await self._backend.supply(missing)
            self._supplied |= missing
        except DamagedRepository:
            if self._repaired:
                raise
            self._repaired = True
            self._supplied = frozenset()
            self._rounds = 0
            await self._backend.repair()


async def mended(backend: Backend, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function`; run it again with the files that it missed, and once more if the repository could be repaired."""
    mending = Mending(backend)
    while True:
        try:
            return await backend.run(function, *args, **kwargs)
        except DamagedRepository as error:
            await mending.after(error)
