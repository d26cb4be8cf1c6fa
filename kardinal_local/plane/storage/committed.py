"""The committed objects, which are all that a client may see."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from kardinal_local.plane.storage.entries import Change, Entry
from kardinal_local.plane.storage.history import History
from kardinal_local.plane.storage.index import Index

__all__ = ["Committed", "Listener"]

Listener = Callable[[Change], None]
_log = logging.getLogger(__name__)


class Committed(Index):
    """The objects as they are on disk, how they came about of late, and who wants to hear of it."""

    def __init__(self, entries: Iterable[Entry], *, revision: int) -> None:
        super().__init__(entries, revision=revision)
        self.history = History(floor=self.revision)
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> None:
        """Call `listener` after every commit, in order."""
        self._listeners.append(listener)

    def publish(self, change: Change) -> None:
        """Show `change`, which is on disk, to all readers."""
        self.apply(change)
        self.history.append(change)
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:
                # It happened: neither its writer nor the next listener has to suffer.
                _log.exception("a listener failed on a commit of %s", change.entry.resource)
