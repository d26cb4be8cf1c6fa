"""The backend of a remote repository: a bare mirror of it.

All promotions share the mirror. Reading fetches first, and callers that ask at the same time share one fetch. A caller
never shares a fetch that began before it asked, because that fetch may have missed the commit it looks for. Writing
does not fetch: it builds on the commits in the mirror, and if the remote has moved on, the push is refused, the mirror
fetches and the change is built again.

The transfers are made by `git` (`program`), in child processes that can be killed (`transfers`).

A mirror contains the whole history of the branches in use, and no other branch. If the host supports it, the mirror
contains no file contents. libgit2 does not fetch missing contents, so an operation that misses some ends, all of them
are fetched at once, and the operation runs again (`mended`).

Everything in a mirror can be fetched again. If it is damaged, if a fetch into it was cut short, or if it has too many
small packs, it is deleted and cloned again. A mirror that has only grown waits for its current operations, but not
forever: an operation that loses its mirror starts again in the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import ParamSpec, TypeVar

import pygit2
from pygit2.enums import RepositoryOpenFlag

from kardinal.clock import Clock
from kardinal.git.addresses import HostAddresses
from kardinal.git.cache import MAX_AGE, Cache, discard, remove_unfinished
from kardinal.git.credentials import GitCredentials
from kardinal.git.errors import (
    BranchLocked,
    DamagedRepository,
    GitError,
    MirrorBusy,
    MirrorReplaced,
    RefMoved,
    TransferStopped,
)
from kardinal.git.meaning import Expected
from kardinal.git.names import branch_of
from kardinal.git.objects import Staging
from kardinal.git.program import GitProgram, find_git
from kardinal.git.redirects import following
from kardinal.git.refs import RefStore
from kardinal.git.runner import GitRunner
from kardinal.git.shares import Lane
from kardinal.git.transfers import TransferLimits, Transfers
from kardinal.processes.memory_shares import MemoryPool
from kardinal.processes.threads import off_loop
from kardinal.tree.repository_url import RepositoryURL

__all__ = ["MirrorBackend"]

P = ParamSpec("P")
T = TypeVar("T")

_MAX_PACKS = 500
"""The most packs of a mirror. Each fetch adds one, and many packs make every look-up slow."""
_MAX_LOOSE = 100
"""The most loose objects in one of 256 directories, which means about 25,000 in total."""

_AT_MOST = 4.0
"""The factor by which a mirror may exceed its size or age while operations use it."""

_OVERTAKEN = 2
"""The number of retries of a fetch. A lock that is still there after them was left by a killed process."""

_MAX_USED = 256
"""The most references that one fetch asks for."""
_EVERYTHING = "refs/heads/*"

_LOCK_KNOWN = timedelta(minutes=15)
"""How long after a refused push the host's lock counts as existing; longer than the time between two attempts."""


@dataclass(frozen=True, slots=True)
class _FoundLock:
    """A lock file at the host that the last push to a reference has met.

    It counts as existing while the reference is at `tip`, and until `until` at most.
    """

    path: str
    said: str
    tip: str | None
    until: datetime


class MirrorBackend:
    """The backend of a repository behind https, ssh or http."""

    def __init__(
        self,
        url: RepositoryURL,
        credentials: GitCredentials | None,
        *,
        owner: str,
        cache: Cache,
        runner: GitRunner,
        clock: Clock,
        limits: TransferLimits,
        memory: MemoryPool,
        addresses: HostAddresses | None,
        on_fetch: Callable[[], None],
    ) -> None:
        self.url = url
        self.credentials = credentials
        """The credentials of the next transfer."""
        self._cache = cache
        self._path = cache.path(url, credentials, owner)
        self._lane = Lane(url.host, owner)
        self._runner = runner
        self._clock = clock
        self._on_fetch = on_fetch
        self._exclusive = asyncio.Lock()
        self._waiting: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._used: dict[str, None] = {}
        self._learnt: set[str] = set()
        self._everything = False
        self._whole = False
        self._damaged = False
        self._discarded = 0
        self._empty = False
        self._transfers = Transfers(limits, memory, room=partial(cache.make_room, self._path))
        self._addresses = addresses
        self._locks: dict[str, _FoundLock] = {}

    def use(self, *refs: str) -> None:
        for ref in refs:
            self._used.pop(ref, None)
            self._used[ref] = None
        while len(self._used) > _MAX_USED:
            forgotten = next(iter(self._used))
            del self._used[forgotten]
            self._learnt.discard(forgotten)

    async def refresh(self, *, everything: bool = False) -> None:
        self._everything = self._everything or everything
        # A task that waits for its turn has not fetched yet, so it covers everything requested until then.
        if self._waiting is None:
            self._waiting = asyncio.create_task(self._take_turn(), name="git fetch")
            self._running.add(self._waiting)
            self._waiting.add_done_callback(self._ended)
        await asyncio.shield(self._waiting)

    async def prepare(self) -> None:
        if not self._used.keys() <= self._learnt:
            await self.refresh()

    async def supply(self, ids: frozenset[str]) -> None:
        async with self._exclusive:
            await self._runner.run_transfer(self._lane, self._supply, sorted(ids))

    def hold(self) -> Callable[[], None]:
        return self._cache.hold(self._path)

    async def repair(self) -> None:
        self._damaged = True
        await self.refresh()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._runner.run_transfer(self._lane, self._use_mirror, partial(function, *args, **kwargs))

    def _use_mirror(self, function: Callable[[], T]) -> T:
        with self._cache.using(self._path):
            discarded = self._discarded
            if self._empty or not self._path.is_dir():
                raise MirrorReplaced(f"the mirror of {self.url.text} was deleted")
            try:
                return function()
            except (OSError, pygit2.GitError, GitError) as error:
                if discarded == self._discarded:
                    raise
                raise MirrorReplaced(f"the mirror of {self.url.text} was made anew") from error

    @off_loop
    def open(self) -> pygit2.Repository:
        flags = RepositoryOpenFlag.NO_SEARCH | RepositoryOpenFlag.BARE
        try:
            return pygit2.Repository(str(self._path), flags)
        except pygit2.GitError as error:
            raise DamagedRepository(f"the mirror of {self.url.text} can not be opened") from error

    def tip(self, ref: str) -> str | None:
        return self._refs.read(ref)

    @off_loop
    def publish(self, ref: str, *, old: str | None, new: str, staging: Staging) -> None:
        staging.flush(new)
        repository = self.open()
        self._push(new, Expected(ref, old))
        # The push succeeded. If a fetch holds the reference now, the mirror learns the commit with the next fetch.
        with suppress(OSError, pygit2.GitError):
            repository.references.create(ref, new, force=True)

    @off_loop
    def remove(self, ref: str, *, old: str) -> None:
        repository = self.open()
        self._push(None, Expected(ref, old))
        with suppress(OSError, pygit2.GitError, KeyError):
            repository.references.delete(ref)

    @off_loop
    def try_push(self, ref: str, *, at: str) -> None:
        found = self._locks.get(ref)
        # Only a real push finds a lock; `try_push` is none.
        if found is not None and found.tip == at and self._clock.now() < found.until:
            raise BranchLocked(branch_of(ref), said=found.said, lock=found.path)
        following(self.url.text, lambda address: self._git.try_push(address, Expected(ref, at)))

    async def close(self) -> None:
        """Kill the current fetches, and let a push end.

        If a push has to be killed, its commit is found later by its trailers.
        """
        self._transfers.stop()
        try:
            await asyncio.to_thread(self._transfers.wait)
        finally:
            self._transfers.kill()
        await asyncio.gather(*self._running, return_exceptions=True)

    @property
    def _refs(self) -> RefStore:
        return RefStore(str(self._path))

    async def _take_turn(self) -> None:
        async with self._exclusive:
            self._waiting = None
            self._on_fetch()
            refs = [_EVERYTHING] if self._everything else list(self._used)
            self._everything = False
            await self._runner.run_transfer(self._lane, self._fetch, refs, now=self._clock.now().timestamp())
            self._learnt.update(self._used if refs == [_EVERYTHING] else self._used.keys() & set(refs))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the callers have received the error, unless they were cancelled

    @off_loop
    def _fetch(self, refs: list[str], *, now: float) -> None:
        self._cache.claim(now=now)
        with self._cache.using(self._path):
            growth = self._growth(now)
            if self._damaged or growth > _AT_MOST:
                self._discard()
            elif growth > 1:
                self._empty = self._cache.discard_unused(self._path)
            with self._tidied():
                try:
                    self._fetch_into(refs)
                except DamagedRepository:
                    self._discard()
                    self._fetch_into(refs)
            self._damaged = self._empty = False

    @contextmanager
    def _tidied(self) -> Iterator[None]:
        """Remove the unfinished files of the transfers in the block, however they end."""
        try:
            yield
        except TransferStopped:
            # A killed transfer leaves locks and unfinished packs.
            self._discard()
            raise
        finally:
            remove_unfinished(self._path)
            self._cache.make_room(self._path)

    def _fetch_into(self, refs: list[str]) -> None:
        self._create_or_open()
        absent = following(self.url.text, lambda address: self._fetch_from(address, refs)) if refs else ()
        for ref in absent:
            with suppress(RefMoved):
                self._refs.update(ref, old=self._refs.read(ref), new=None)

    def _fetch_from(self, address: str, refs: list[str]) -> Sequence[str]:
        """Fetch, and retry if a push of this process has moved a branch meanwhile; return the absent references."""
        for _ in range(_OVERTAKEN):
            with suppress(MirrorBusy):
                return self._git.fetch(address, refs, whole=self._whole)
        return self._git.fetch(address, refs, whole=self._whole)

    @off_loop
    def _supply(self, ids: list[str]) -> None:
        with self._cache.using(self._path), self._tidied():
            try:
                following(self.url.text, lambda address: self._git.fetch_objects(address, ids))
            except DamagedRepository:
                # The host omits files but does not serve them singly, so later fetches are complete.
                self._whole = True
                raise

    def _discard(self) -> None:
        """Delete the mirror even while operations use it."""
        self._empty = True
        self._discarded += 1
        discard(self._path)

    def _push(self, new: str | None, expected: Expected) -> None:
        try:
            following(self.url.text, lambda address: self._git.push(address, new, expected))
            # Not removed before: while a push is under way, the result of the last push is all that is known.
            self._locks.pop(expected.ref, None)
        except RefMoved as moved:
            if moved.lock:
                until = self._clock.now() + _LOCK_KNOWN
                self._locks[expected.ref] = _FoundLock(moved.lock, moved.said, tip=expected.old, until=until)
            raise

    @property
    def _git(self) -> GitProgram:
        return GitProgram(find_git(), str(self._path), self.credentials, self._transfers, self._addresses)

    def _create_or_open(self) -> None:
        if self._path.is_dir():
            self.open()
            return
        try:
            pygit2.init_repository(str(self._path), bare=True)
        except pygit2.GitError:
            raise GitError(
                f"no mirror of {self.url.text} can be made", remedy="Check permissions and free space of the cache"
            ) from None

    def _growth(self, now: float) -> float:
        """Return the size and age of the mirror as a multiple of the maximum."""
        if not self._path.is_dir():
            return 0.0
        packs = sum(1 for _ in (self._path / "objects" / "pack").glob("*.pack"))
        loose = sum(1 for _ in (self._path / "objects" / "17").glob("*"))
        made = (self._path / "description").stat().st_mtime if (self._path / "description").exists() else now
        return max(packs / _MAX_PACKS, loose / _MAX_LOOSE, (now - made) / MAX_AGE)
