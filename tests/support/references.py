"""Wait until the programs of a test have seen the references of its repositories.

A file event takes some 50 ms of real time, in which nothing else need happen: a virtual clock that went on meanwhile
would show a program hours too late what another one did at the same instant. So rest is also that every watcher has
seen what is there.
"""

from __future__ import annotations

import threading

from kardinal.git.file_events import FILE_EVENTS
from kardinal.git.watcher import RefWatcher, look

__all__ = ["references_behind"]


def references_behind() -> list[str]:
    """Return the watchers that have not seen a change yet, a line each."""
    watchers = [each.subscriber for each in FILE_EVENTS.interests if isinstance(each.subscriber, RefWatcher)]
    behind: list[str] = []
    if watchers:
        # Looking blocks, which no thread with a running loop may do.
        thread = threading.Thread(target=lambda: behind.extend(line for each in watchers for line in _behind(each)))
        thread.start()
        thread.join()
    return behind


def _behind(watcher: RefWatcher) -> list[str]:
    stands = look(watcher.place).stamp
    return [] if stands == watcher.seen else ["a watcher has not seen how the references stand"]
