"""The disk as a test wants it: full, failing, or taking its time."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from kardinal_local.plane.errors import StorageFull
from kardinal_local.plane.storage.committers import GroupCommitter
from kardinal_local.plane.storage.database import Database
from kardinal_local.plane.storage.entries import Change

__all__ = ["Gate", "Space"]

ENDLESS = 2**30


class Space:
    """The space that files of planes may take, which SQLite itself keeps to: `PRAGMA max_page_count`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._connections: list[sqlite3.Connection] = []
        connect = sqlite3.connect

        def remembered(*arguments: Any, **options: Any) -> sqlite3.Connection:
            self._connections.append(connect(*arguments, **options))
            return self._connections[-1]

        monkeypatch.setattr(sqlite3, "connect", remembered)

    def run_out(self) -> None:
        """No file may grow by another page, until there is room `again`."""
        self._limit(1)

    def again(self) -> None:
        self._limit(ENDLESS)

    def _limit(self, pages: int) -> None:
        # Never less than what a file has; the last connection is the one that was not closed.
        self._connections[-1].execute(f"PRAGMA max_page_count={pages}")


class Gate:
    """Stands before every commit: lets it through, holds it, or refuses one that has to do with an object."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.commits: list[int] = []
        self.refused = ""
        self._open = threading.Event()
        self._open.set()
        self._waiting = 0
        self._news = asyncio.Event()
        write, settled = Database.write, GroupCommitter.settled

        def passed(database: Database, changes: Sequence[Change]) -> None:
            self._open.wait()
            if any(change.entry.name == self.refused for change in changes):
                raise StorageFull("no space left")
            self.commits.append(len(changes))
            write(database, changes)

        async def waited(committer: GroupCommitter) -> None:
            self._waiting += 1
            self._news.set()
            try:
                await settled(committer)
            finally:
                self._waiting -= 1

        monkeypatch.setattr(Database, "write", passed)
        monkeypatch.setattr(GroupCommitter, "settled", waited)

    def close(self) -> None:
        """Hold what comes from now on."""
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def waiting(self, number: int) -> None:
        """Until so many answers are held back."""
        while self._waiting < number:
            self._news.clear()
            await self._news.wait()
