"""Tell which directories changed, by the file events of the operating system.

One thread and one operating system watcher serve every repository of the process: inotify allows a user 128 instances,
and an idle thread wakes some 25 times a second. Both exist only while there is something to watch.

The set of directories can not be changed while the library watches, so that a new set means a new watcher. What falls
between the two is lost, and therefore every subscriber is woken once the new one listens: a wake says "look again" and
no more. Where the system refuses to watch, they are woken every few seconds instead.
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
"""How often the library looks whether something came, and how long it waits for more of it."""
_GROUPED_MS = 80
"""How long changes that keep coming are held back."""
_POLL_MS = 1000
"""How often the library looks by itself on a system without file events."""
RETRY_SECONDS = 5.0
"""After the system refused to watch."""
_UNRELATED = ".lock"
"""How the files are called that Git writes before it renames them."""

log = structlog.get_logger(__name__)

Names = frozenset[str] | None
"""The entries of a directory that matter; None is every one but lock files."""


class Subscriber(Protocol):
    """Hears that directories changed, or that their changes are told from now on."""

    def changed(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False)
class Interest:
    """The directories of one subscriber, which is called on its loop."""

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
        """Wake the subscriber, from any thread."""
        try:
            self.loop.call_soon_threadsafe(self.subscriber.changed)
        except RuntimeError:
            log.debug("the loop of a subscriber has ended")


class FileEvents:
    """The watched directories of a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._interests: set[Interest] = set()
        self._running = False
        self._changed = _Changed()
        self._refused = False

    @property
    def interests(self) -> frozenset[Interest]:
        """The directories that are watched now, or soon."""
        with self._lock:
            return frozenset(self._interests)

    def add(self, interest: Interest, *, instead_of: Interest | None = None) -> None:
        """Watch for `interest` from soon on, and wake it when that is so."""
        with self._lock:
            self._interests -= {instead_of}
            self._interests.add(interest)
            self._changed.set()
            if not self._running:
                self._running = True
                # Not a daemon: one that is in native code when the interpreter ends brings it down.
                threading.Thread(target=self._run, name="file-events", daemon=False).start()

    def remove(self, interest: Interest) -> None:
        """Wake `interest` no more."""
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
        """Return the interests from now on; the thread ends when there are none."""
        with self._lock:
            self._changed.clear()
            if not self._interests or self._changed.ending:
                self._running = False
                return frozenset()
            return frozenset(self._interests)

    def _open(self, directories: Iterable[str]) -> RustNotify | None:
        # Here, because it takes as long as half of a command line's start, and most of them watch nothing.
        from watchfiles._rust_notify import RustNotify  # noqa: PLC0415

        try:
            return RustNotify(sorted(filter(_can_be_watched, directories)), False, False, _POLL_MS, False, False)
        except FileNotFoundError:
            # The subscriber that is woken now sees it too, and asks for other directories.
            return None
        except (OSError, RuntimeError) as error:
            if not self._refused:
                self._refused = True
                log.warning(
                    "file events are not available; references are looked at every few seconds", error=str(error)
                )
            return None

    def _dispatch(self, watcher: RustNotify, interests: Iterable[Interest]) -> bool:
        """Wake who is concerned until the set of directories changes; False when the watcher failed before."""
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
    """Return whether the library takes it: one directory that cannot be read, or is no UTF-8, would cost all others."""
    try:
        directory.encode()
    except UnicodeEncodeError:
        return False
    return os.access(directory, os.R_OK) or not os.path.isdir(directory)


class _Changed(threading.Event):
    """Set when the thread has to begin anew, also because the interpreter ends, which waits for it."""

    @property
    def ending(self) -> bool:
        return not threading.main_thread().is_alive()

    def is_set(self) -> bool:
        return super().is_set() or self.ending


FILE_EVENTS = FileEvents()
"""Those of this process."""
