"""Report which directories changed, by the file events of the operating system.

One thread and one system watcher serve all repositories of the process, because inotify allows a user 128 instances,
and an idle thread wakes about 25 times a second. Both exist only while there are subscribers.

The library cannot change the set of directories while it watches, so a new set needs a new watcher. Events between the
two are lost. So every subscriber is woken once the new watcher listens; a wake only means that the subscriber should
look again. If the system refuses to watch, subscribers are woken every few seconds instead.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import structlog

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

__all__ = ["FILE_EVENTS", "FileEvents", "Interest", "Names", "Subscriber"]

_STEP_MS = 40
"""The interval, in milliseconds, at which the library looks for events and waits for more of them."""
_GROUPED_MS = 80
"""The time, in milliseconds, for which ongoing changes are grouped."""
_POLL_MS = 1000
"""The interval, in milliseconds, at which the library polls on a system without file events."""
RETRY_SECONDS = 5.0
"""The wait after the system has refused to watch."""
_UNRELATED = ".lock"
"""The suffix of the files that Git writes before it renames them."""

log = structlog.get_logger(__name__)

Names = frozenset[str] | None
"""The entries of a directory that matter; None means all except lock files."""


class Subscriber(Protocol):
    """A receiver of the notice that directories changed, or that their changes are reported from now on."""

    def changed(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Interest:
    """The directories of one subscriber, which is called on its own event loop."""

    directories: Mapping[str, Names]
    subscriber: Subscriber
    loop: asyncio.AbstractEventLoop

    def concerns(self, path: str) -> bool:
        """Return whether a change at `path` may matter."""
        if path in self.directories:
            return True
        directory, name = os.path.split(path)
        if directory not in self.directories:
            return False
        names = self.directories[directory]
        return not name.endswith(_UNRELATED) if names is None else name in names

    def notify(self) -> None:
        """Wake the subscriber; callable from any thread."""
        try:
            self.loop.call_soon_threadsafe(self.subscriber.changed)
        except RuntimeError:
            log.debug("the loop of a subscriber has ended")


class FileEvents:
    """Watches the directories of a process on one thread, and wakes the subscribers when files in them change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interests: set[Interest] = set()
        self._running = False
        self._changed = _Changed()
        self._refused = False

    @property
    def interests(self) -> frozenset[Interest]:
        """Return the directories that are watched, or will be soon."""
        with self._lock:
            return frozenset(self._interests)

    def add(self, interest: Interest, *, instead_of: Interest | None = None) -> None:
        """Start watching for `interest`, and wake its subscriber once that is the case."""
        with self._lock:
            self._interests -= {instead_of}
            self._interests.add(interest)
            self._changed.set()
            if not self._running:
                self._running = True
                # Not a daemon: a daemon thread in native code crashes the interpreter when the process ends.
                threading.Thread(target=self._run, name="file-events", daemon=False).start()

    def remove(self, interest: Interest) -> None:
        """Stop waking `interest`."""
        with self._lock:
            self._interests.discard(interest)
            self._changed.set()

    def _run(self) -> None:
        while interests := self._taken():
            watcher = self._open({directory for interest in interests for directory in interest.directories})
            for interest in interests:
                interest.notify()
            if watcher is not None and self._dispatch(watcher, interests):
                continue
            self._changed.wait(RETRY_SECONDS)

    def _taken(self) -> frozenset[Interest]:
        """Return the present interests; without any, the thread ends."""
        with self._lock:
            self._changed.clear()
            if not self._interests or self._changed.ending:
                self._running = False
                return frozenset()
            return frozenset(self._interests)

    def _open(self, directories: Iterable[str]) -> RustNotify | None:
        # Imported here, because it takes half the start time of a command, and most commands watch nothing.
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

        try:
            return RustNotify(sorted(filter(_can_be_watched, directories)), False, False, _POLL_MS, False, False)
        except FileNotFoundError:
            # The subscriber that is woken now notices it as well, and requests other directories.
            return None
        except (OSError, RuntimeError) as error:
            if not self._refused:
                self._refused = True
                log.warning(
                    "file events are not available; references are looked at every few seconds", error=str(error)
                )
            return None

    def _dispatch(self, watcher: RustNotify, interests: Iterable[Interest]) -> bool:
        """Wake the subscribers concerned until the set of directories changes; return False if the watcher failed."""
        with watcher:
            while True:
                try:
                    found = watcher.watch(_GROUPED_MS, _STEP_MS, 0, self._changed)
                except (OSError, RuntimeError) as error:
                    log.info("file events ended and begin again", error=str(error))
                    return False
                if isinstance(found, str):
                    return True
                paths = {path for _, path in found}
                for interest in interests:
                    if any(map(interest.concerns, paths)):
                        interest.notify()


def _can_be_watched(directory: str) -> bool:
    """Return whether the library can watch a directory.

    One that cannot be read, or is not UTF-8, would make it fail for all others.
    """
    try:
        directory.encode()
    except UnicodeEncodeError:
        return False
    return os.access(directory, os.R_OK) or not os.path.isdir(directory)


class _Changed(threading.Event):
    """Set when the thread has to start again; also set when the interpreter ends, which waits for the thread."""

    @property
    def ending(self) -> bool:
        return not threading.main_thread().is_alive()

    def is_set(self) -> bool:
        return super().is_set() or self.ending


FILE_EVENTS = FileEvents()
"""The instance of this process."""
