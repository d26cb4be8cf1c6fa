"""The protocol of a repository's place, so that one set of operations serves local and remote ones.

What is not asynchronous is called on a thread, but for `use`. The protocol of a change is the same for all places:
read the tip, build on it, `publish` against the tip that was read. When another writer was faster, `publish` raises
`RefMoved` and changes nothing; the caller refreshes, builds again on what is there now, and publishes that
(`converge`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

import pygit2

from kardinal.api.repository_url import RepositoryURL
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

__all__ = ["Backend", "Mending", "converge", "mended", "require_tip"]

P = ParamSpec("P")
T = TypeVar("T")

_ATTEMPTS = 100
"""Rebuilds of one change. Each lost race means that another commit landed, so many are normal on a busy branch."""

_REFUSALS = 5
"""Refusals after which the branch stood where it was: a lock that is not given up, left to the caller's back-off."""

_ROUNDS = 200
"""Fetches for the files of one operation. Each brings what lies near the file that was missed, so a few are normal."""


class Backend(Protocol):
    """One repository, wherever it is."""

    url: RepositoryURL

    def use(self, *refs: str) -> None:
        """Say which references the next operation reads or moves; others need not be known."""
        ...

    async def refresh(self, *, everything: bool = False) -> None:
        """Learn where the references in use are now, or all branches."""
        ...

    async def prepare(self) -> None:
        """As `refresh`, but content with having learnt it at some time."""
        ...

    async def supply(self, ids: frozenset[str]) -> None:
        """After an `ObjectsMissing`: bring these files here."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep what is here of the repository, until the result is called."""
        ...

    async def repair(self) -> None:
        """After a `DamagedRepository`: make readable again what can be."""
        ...

    async def close(self) -> None:
        """Finish what is under way."""
        ...

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that reads, and may publish, on a thread."""
        ...

    def open(self) -> pygit2.Repository: ...

    def tip(self, ref: str) -> str | None:
        """Return the commit of a reference, as far as is known."""
        ...

    def publish(self, ref: str, *, old: str | None, new: str, staging: Staging) -> None:
        """Write what `new` needs and move `ref` from `old` to it; `RefMoved` when it is not at `old`."""
        ...

    def remove(self, ref: str, *, old: str) -> None:
        """Delete `ref` if it is at `old`."""
        ...

    def try_push(self, ref: str, *, at: str) -> None:
        """Find out, as far as is possible without doing it, whether `ref` may be moved; raises as `publish` does."""
        ...


def require_tip(backend: Backend, branch: str) -> str:
    """Return the head of a branch that has to exist."""
    tip = backend.tip(branch_ref(branch))
    if tip is None:
        raise BranchNotFound(
            f"{backend.url.text} has no branch {branch}",
            remedy="Create it with a first commit, or name another branch",
        )
    return tip


async def converge(backend: Backend, attempt: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `attempt` until no other writer is faster."""
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
        """Bring the files that were missed, or repair the repository; raises what neither can help."""
        missing = error.ids if isinstance(error, ObjectsMissing) else frozenset()
        self._rounds += 1
        if isinstance(error, MirrorReplaced) and self._rounds <= _ROUNDS:
            # Nothing is wrong with the one that is there now: it only has to learn the references.
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
            self._repaired, self._supplied, self._rounds = True, frozenset(), 0
            await self._backend.repair()


async def mended(backend: Backend, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run `function`, again with the files that it missed, and once more if the repository could be repaired."""
    mending = Mending(backend)
    while True:
        try:
            return await backend.run(function, *args, **kwargs)
        except DamagedRepository as error:
            await mending.after(error)
