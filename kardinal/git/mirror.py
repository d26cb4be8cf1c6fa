"""A remote repository, by way of a bare mirror.

All promotions share it. Reading means fetching first, and callers who ask at the same time share one fetch; but
never one that had begun before they asked, because it may not have seen what they are looking for. Writing does not
fetch: it builds on what the mirror knows, and when the remote has moved on the push is refused, the mirror fetches
and the change is built again.

The transfers themselves are made by children that can be killed (`child`): by `git` where there is one, else by libgit2
in a Python of its own.

A mirror has the whole history of the branches that are in use, and of no other. It has no contents of files where the
host can leave them out: libgit2 does not fetch what it lacks, so an operation that misses some ends, what it missed is
fetched in one go, and it is run again (`mended`).

A mirror holds nothing that can not be fetched again. When it is damaged, a fetch into it was cut short, or it has grown
by too many small packs, it is thrown away and cloned anew. One that has grown waits for the operations in it, but not
for ever: those that lose their mirror begin again in the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import ParamSpec, Protocol, TypeVar

import pygit2
from pygit2.enums import RepositoryOpenFlag

from kardinal.api.repository_url import RepositoryURL
from kardinal.git.addresses import HostAddresses
from kardinal.git.cache import MAX_AGE, Cache, discard, remove_unfinished
from kardinal.git.child import Children, TransferLimits
from kardinal.git.credentials import Credentials
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
from kardinal.git.memory import MemoryPool
from kardinal.git.names import branch_of
from kardinal.git.objects import Staging
from kardinal.git.program import GitProgram, find_git
from kardinal.git.redirects import following
from kardinal.git.refs import RefStore
from kardinal.git.runner import GitRunner, off_loop
from kardinal.git.shares import Lane
from kardinal.git.worker_program import WorkerProgram
from kardinal.runtime.clock import Clock

__all__ = ["MirrorBackend"]

P = ParamSpec("P")
T = TypeVar("T")

_MAX_PACKS = 500
"""Packs of a mirror, one per fetch that brought something; more make every look-up slow."""
_MAX_LOOSE = 100
"""Loose objects in one of 256 directories: some 25,000 in all."""

_AT_MOST = 4.0
"""How many times too large or too old a mirror may become while operations go on in it."""

_OVERTAKEN = 2
"""Fetches made again; a lock that is still there then was left by a process that was killed."""

_MAX_USED = 256
"""References that a fetch asks for."""
_EVERYTHING = "refs/heads/*"

_LOCK_KNOWN = timedelta(minutes=15)
"""How long after a refusal a lock of the host counts as being there: longer than between two attempts."""

find_git_once = cache(find_git)


class Transport(Protocol):
    """Makes transfers of one mirror; raises `Redirected` for an address that is not the final one."""

    def fetch(self, url: str, refs: Sequence[str], *, whole: bool) -> Sequence[str]:
        """Make references of the mirror, or those that a pattern stands for, those of `url`; return the absent ones.

        `whole`: with the contents of all files.
        """
        ...

    def fetch_objects(self, url: str, ids: Sequence[str]) -> None:
        """Bring objects into the mirror; `DamagedRepository` where the host does not give single ones."""
        ...

    def push(self, url: str, new: str | None, expected: Expected) -> None:
        """Move a reference of `url` from the expected commit to `new`; None deletes it."""
        ...

    def try_push(self, url: str, expected: Expected) -> None:
        """Ask `url` for the right to move a reference, as far as it can be asked without moving it."""
        ...


@dataclass(frozen=True, slots=True)
class _FoundLock:
    """A lock file at the host that the last push to a reference has met.

    It counts as being there while the reference is at `tip`, and for a while after the last push at most.
    """

    path: str
    said: str
    tip: str | None
    until: datetime


class MirrorBackend:
    """A repository behind https, ssh or http."""

    def __init__(
        self,
        url: RepositoryURL,
        credentials: Credentials | None,
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
        """Of the next transfer."""
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
        self._children = Children(limits, memory, room=partial(cache.make_room, self._path))
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
        # A task that waits for its turn has not looked yet and will see everything asked for until then.
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
        # It is pushed; if a fetch holds the reference just now, the mirror learns it with the next one.
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
        # Only a push finds a lock, and this is none.
        if found is not None and found.tip == at and self._clock.now() < found.until:
            raise BranchLocked(branch_of(ref), said=found.said, lock=found.path)
        following(self.url.text, lambda address: self._transport.try_push(address, Expected(ref, at)))

    async def close(self) -> None:
        """Kill the fetches under way, and let a push end. One that has to be killed is found by its trailers."""
        self._children.stop()
        try:
            await asyncio.to_thread(self._children.wait)
        finally:
            self._children.kill()
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
            task.exception()  # those who asked have been told, unless they have given up

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
        """Leave nothing unfinished of the transfers of the block, however they end."""
        try:
            yield
        except TransferStopped:
            # Killed, it left locks and halves of packs.
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
        """Fetch, and again where a push of ours has moved a branch meanwhile; return the references that are absent."""
        for _ in range(_OVERTAKEN):
            with suppress(MirrorBusy):
                return self._transport.fetch(address, refs, whole=self._whole)
        return self._transport.fetch(address, refs, whole=self._whole)

    @off_loop
    def _supply(self, ids: list[str]) -> None:
        with self._cache.using(self._path), self._tidied():
            try:
                following(self.url.text, lambda address: self._transport.fetch_objects(address, ids))
            except DamagedRepository:
                # It leaves files out, and then does not give them: it gets no second chance.
                self._whole = True
                raise

    def _discard(self) -> None:
        """Delete the mirror also while operations go on in it."""
        self._empty = True
        self._discarded += 1
        discard(self._path)

    def _push(self, new: str | None, expected: Expected) -> None:
        self._locks.pop(expected.ref, None)
        try:
            following(self.url.text, lambda address: self._transport.push(address, new, expected))
        except RefMoved as moved:
            if moved.lock:
                until = self._clock.now() + _LOCK_KNOWN
                self._locks[expected.ref] = _FoundLock(moved.lock, moved.said, tip=expected.old, until=until)
            raise

    @property
    def _transport(self) -> Transport:
        program = find_git_once()
        if program is None:
            if self._addresses is not None:
                # libgit2 cannot be told an address: what it finds itself is connected to.
                self._addresses.find(self.url.text)
            return WorkerProgram(str(self._path), self.credentials, self._children)
        return GitProgram(program, str(self._path), self.credentials, self._children, self._addresses)

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
        """Return how large and old the mirror is, as a multiple of what it should be."""
        if not self._path.is_dir():
            return 0.0
        packs = sum(1 for _ in (self._path / "objects" / "pack").glob("*.pack"))
        loose = sum(1 for _ in (self._path / "objects" / "17").glob("*"))
        made = (self._path / "description").stat().st_mtime if (self._path / "description").exists() else now
        return max(packs / _MAX_PACKS, loose / _MAX_LOOSE, (now - made) / MAX_AGE)
