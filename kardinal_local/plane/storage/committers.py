"""Commit changes to the file: each at once, or in groups.

A committer takes changes in the order in which they were decided, and says when those so far are committed. In between
they are *staged*: the next check must see them, and no client may.

`InlineCommitter` is the default: a change is committed before `commit` returns, so nothing is ever staged and both
views are one. A power failure may take the last moments with it, a crash of the process nothing.

`GroupCommitter` waits for the disk, in a thread. What is decided meanwhile is the next group, so that sixteen writers
wait for one flush and not for sixteen. A group that fails takes the one behind it along, whose changes were decided by
looking at the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from kardinal_local.plane.storage.committed import Committed
from kardinal_local.plane.storage.database import Database
from kardinal_local.plane.storage.entries import Change
from kardinal_local.plane.storage.index import Overlay, View

__all__ = ["Committer", "GroupCommitter", "InlineCommitter"]


class Committer(Protocol):
    """Brings changes to disk, then publishes them."""

    @property
    def staged(self) -> View:
        """What the next check must see."""
        ...

    def commit(self, change: Change) -> None:
        """Take one change; raises when it is known at once that it cannot be committed."""
        ...

    async def settled(self) -> None:
        """Return when every change so far is committed, raise when one of them cannot be."""
        ...

    def close(self) -> None:
        """Blocks, and belongs in a thread."""
        ...


class InlineCommitter:
    """Commits on the event loop."""

    def __init__(self, database: Database, committed: Committed) -> None:
        self._database = database
        self._committed = committed

    @property
    def staged(self) -> View:
        return self._committed

    def commit(self, change: Change) -> None:
        self._database.write([change])
        self._committed.publish(change)

    async def settled(self) -> None:
        return

    def close(self) -> None:
        self._database.close()


@dataclass(frozen=True, slots=True)
class _Group:
    """Changes of one transaction, and what became of it: nothing wrong, or what."""

    changes: list[Change] = field(default_factory=list)
    outcome: asyncio.Future[BaseException | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class GroupCommitter:
    """Commits in a thread of its own, one group after the other."""

    def __init__(self, database: Database, committed: Committed) -> None:
        self._database = database
        self._committed = committed
        self._overlay = Overlay(committed)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="localplane-commit")
        self._under_way: _Group | None = None
        self._next: _Group | None = None

    @property
    def staged(self) -> View:
        return self._overlay

    def commit(self, change: Change) -> None:
        self._overlay.stage(change)
        if self._next is None:
            self._next = _Group()
        self._next.changes.append(change)
        if self._under_way is None:
            self._begin()

    async def settled(self) -> None:
        if (group := self._next or self._under_way) is not None:
            problem = await asyncio.shield(group.outcome)
            if problem is not None:
                raise problem

    def close(self) -> None:
        self._thread.shutdown()
        self._database.close()

    def _begin(self) -> None:
        self._under_way, self._next = self._next, None
        if self._under_way is not None:
            group = self._under_way
            writing = asyncio.get_running_loop().run_in_executor(self._thread, self._database.write, group.changes)
            writing.add_done_callback(lambda done: self._end(group, done.exception()))

    def _end(self, group: _Group, problem: BaseException | None) -> None:
        if problem is None:
            self._publish(group.changes)
            group.outcome.set_result(None)
            self._begin()
            return
        failed = [group] if self._next is None else [group, self._next]
        self._under_way = self._next = None
        self._overlay.clear()
        for each in failed:
            each.outcome.set_result(problem)

    def _publish(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._committed.publish(change)
            self._overlay.settle(change)
