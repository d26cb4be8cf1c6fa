"""Processes that talk to a remote, and that can be killed.

A transfer waits for a peer that may be slow, endless or hostile, and no library gives a thread back from that. Here it
is a child in a process group of its own, and killed with all that it started when it takes too long or holds too much
memory. A shell stands between: it sets the limit, and its watcher kills the group when standard input ends,
which the kernel does for us if this process is killed.

When the program stops, a push is given time to end where everything else is killed: a host that loses its client in the
middle of one may leave lock files behind, and then refuses every push.

What a child says comes by two pipes: events for the program (`Reader.feed`), and text for people, of which the end is
kept. Both are bounded, because a remote has a say in their length.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.git.errors import CacheFull, TransferStopped
from kardinal.git.memory import LOOKED_AT_EVERY, MemoryPool

__all__ = ["PUSH_ENDS_WITHIN", "Children", "Ended", "Reader", "TransferLimits", "cache_full", "private_file"]

_SCRIPT = """\
ulimit -d "$1" 2>/dev/null
ulimit -f "$2" 2>/dev/null
shift 2
exec 3<&0 4>&1 </dev/null 1>&2
{ read -r _ <&3; kill -KILL 0; } 4>&- &
watcher=$!
"$@" 3<&-
code=$?
kill -KILL $watcher
wait $watcher 2>/dev/null
exit $code
"""
PUSH_ENDS_WITHIN = 60.0
"""Seconds; `kardinal.runtime.manager` gives the parts of a program longer than this to stop."""
_KEPT_TEXT = 64 << 10
_LONGEST_LINE = 64 << 10
_CHUNK = 64 << 10
_BLOCK = 512
"""Bytes of the unit in which shells count the length of files."""
_LOOKS = 1.0
"""Seconds between two looks at the room that is left for a transfer."""
_FIRST_FREE = 20
"""The lowest number of a file passed on: shells use those below ten by one digit, and some above for themselves."""


@dataclass(frozen=True, slots=True)
class TransferLimits:
    """How long and how large a transfer may be, in seconds and bytes.

    `advertisement`: until the remote has listed its references. `rate`: bytes a second, over any `window`. `file`: of
    each file that is written, such as the pack of a clone. `ending`: for a push that is under way when the program
    stops.
    """

    total: float = 3600.0
    advertisement: float = 60.0
    window: int = 60
    rate: int = 1024
    file: int = 1 << 30
    ending: float = PUSH_ENDS_WITHIN


class Reader(Protocol):
    """Understands the events of a child, line by line."""

    advertised: bool
    """Whether the remote has listed its references."""
    received: int | None
    """Bytes so far; None where the child itself watches the rate."""

    def feed(self, line: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit code, and the end of its text.

    `cramped`: its files could not be as long as `TransferLimits.file`, because the cache had less room.
    """

    code: int
    text: str
    cramped: bool = False


@contextlib.contextmanager
def private_file(content: bytes) -> Iterator[int]:
    """Yield a file without a name that a child can be given, for what must not stand in its arguments."""
    with contextlib.ExitStack() as stack:
        if hasattr(os, "memfd_create"):
            made = os.memfd_create("kardinal", os.MFD_CLOEXEC)
            stack.callback(os.close, made)
            os.fchmod(made, 0o600)
        else:
            made = stack.enter_context(tempfile.TemporaryFile()).fileno()
        with open(made, "wb", closefd=False) as file:
            file.write(content)
        os.lseek(made, 0, os.SEEK_SET)
        number = fcntl.fcntl(made, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
        stack.callback(os.close, number)
        yield number


class Children:
    """The children of one repository; `close` kills them all, and `stop`, `wait` and `kill` let pushes end.

    `memory` may be that of other repositories, too. `room`: returns the bytes that those which do not push may still
    write.
    """

    def __init__(self, limits: TransferLimits, memory: MemoryPool, *, room: Callable[[], int] | None = None) -> None:
        self.limits = limits
        self._memory = memory
        self._room = room
        self._changed = threading.Condition()
        self._running: dict[subprocess.Popen[bytes], bool] = {}
        """Whether each one pushes."""
        self._closed = False

    def close(self) -> None:
        """Let nothing start any more, and kill what runs."""
        self.stop()
        self.kill()

    def stop(self) -> None:
        """Let nothing start any more, and kill what runs but the pushes."""
        with self._changed:
            self._closed = True
            for process, pushes in self._running.items():
                if not pushes:
                    _kill(process)

    def wait(self) -> None:
        """Wait for the pushes, for `limits.ending` at most. Blocks."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, self.limits.ending)

    def kill(self) -> None:
        """Kill what is left."""
        with self._changed:
            for process in self._running:
                _kill(process)

    def run(
        self,
        arguments: Sequence[str],
        *,
        url: str,
        environment: Mapping[str, str],
        files: Sequence[int],
        reader: Reader,
        pushes: bool = False,
    ) -> Ended:
        """Run a child to its end; raises `TransferStopped`, or its `MemoryExceeded`, when it had to be killed.

        `pushes`: it may move a reference of the remote.
        """
        room = _Room(url, self._room) if self._room is not None and not pushes else None
        size = self.limits.file if room is None else min(self.limits.file, room.left())
        memory, blocks = self._memory.mapped // 1024, size // _BLOCK
        command = ["/bin/sh", "-c", _SCRIPT, "sh", str(memory), str(blocks), *arguments]
        with self._changed:
            if self._closed:
                raise _stopped(url)
            process = subprocess.Popen(  # noqa: S603 - the program is ours, its arguments are checked URLs and names
                command,
                env=dict(environment),
                pass_fds=files,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running[process] = pushes
        text = bytearray()
        watch = _Watch(url, self.limits, reader, room)

        def check() -> float:
            self._memory.check(process.pid, url)
            return min(watch.check(), LOOKED_AT_EVERY)

        self._memory.enter(process.pid)
        try:
            _follow(process, reader, text, check)
        finally:
            self._memory.leave(process.pid)
            # Killed before it is waited for: until then its number belongs to no other process.
            with self._changed:
                del self._running[process]
                closed = self._closed
                self._changed.notify_all()
            _kill(process)
            code = process.wait()
            _close_pipes(process)
            _reap_group(process.pid)
        if closed and code < 0:
            raise _stopped(url)
        if room is not None:
            room.left()
        return Ended(code, text.decode("utf-8", "replace"), cramped=size < self.limits.file)


class _Room:
    """The room for what one transfer brings."""

    def __init__(self, url: str, room: Callable[[], int]) -> None:
        self._url = url
        self._room = room
        self._looked = time.monotonic()

    def left(self) -> int:
        """Return the bytes that may still be written; raises `CacheFull` for less than two blocks."""
        left = self._room()
        self._looked = time.monotonic()
        if left < 2 * _BLOCK:
            raise cache_full(self._url)
        return left

    def look(self) -> float:
        """Look from time to time; return the seconds until the next look."""
        if time.monotonic() - self._looked >= _LOOKS:
            self.left()
        return _LOOKS


def cache_full(url: str) -> CacheFull:
    """Return that the cache has no room for a transfer."""
    return CacheFull(
        f"there is no room for what {url} sends beside the mirrors in use",
        remedy="Raise --git-cache-max-bytes: one namespace may use three quarters of it at once",
    )


class _Watch:
    """Tells when a child has used up its time, or its room."""

    def __init__(self, url: str, limits: TransferLimits, reader: Reader, room: _Room | None) -> None:
        self._url = url
        self._limits = limits
        self._reader = reader
        self._room = room
        # What is waited for is another machine: real time.
        self._started = self._window = time.monotonic()
        self._before = 0

    def check(self) -> float:
        """Return the seconds until the next look; raises `TransferStopped` when time or room is used up."""
        until = self._check_time()
        return min(until, self._room.look()) if self._room is not None else until

    def _check_time(self) -> float:
        now, limits = time.monotonic(), self._limits
        if now - self._started >= limits.total:
            raise TransferStopped(
                f"the transfer with {self._url} took longer than {limits.total:.0f} s",
                remedy="Raise --git-transfer-max if the repository is that large",
            )
        until = self._started + limits.total
        if not self._reader.advertised:
            if now - self._started >= limits.advertisement:
                raise TransferStopped(f"{self._url} has not listed its branches in {limits.advertisement:.0f} s")
            return min(until, self._started + limits.advertisement) - now
        if self._reader.received is None:
            return until - now
        if now - self._window >= limits.window:
            if self._reader.received - self._before < limits.rate * limits.window:
                raise TransferStopped(f"{self._url} sends less than {limits.rate} bytes a second")
            self._window, self._before = now, self._reader.received
        return min(until, self._window + limits.window) - now


def _follow(process: subprocess.Popen[bytes], reader: Reader, text: bytearray, check: Callable[[], float]) -> None:
    """Read both pipes of a child until it has closed them."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select(max(check(), 0.01)):
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    text += chunk
                    del text[:-_KEPT_TEXT]
                else:
                    *lines, rest = (rest + chunk).split(b"\n")
                    rest = rest[:_LONGEST_LINE]
                    for line in lines:
                        reader.feed(line.decode("utf-8", "replace"))


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _reap_group(group: int) -> None:
    """Wait for what the child started: as the first process of a container we inherit it."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)


def _stopped(url: str) -> TransferStopped:
    return TransferStopped(f"the transfer with {url} was stopped")


_LIMITS = TransferLimits()

FOREIGN = ForeignBytes(
    "transfers of Git repositories",
    of="Git host",
    size=f"{mebibytes(_LIMITS.file)} a pack, and what `--git-cache-max-bytes` leaves beside the mirrors in use, "
    "unfinished packs included; what a host says: the last 64 KiB",
    unpacked="as Git objects",
    structure="as Git objects",
    time=f"{_LIMITS.total / 3600:.0f} h (`--git-transfer-max`), {_LIMITS.advertisement:.0f} s to list the branches, "
    f"{_LIMITS.rate:,} bytes a second over {_LIMITS.window} s",
    held="on disk: mirrors in use of a namespace three quarters of `--git-cache-max-bytes`; 16 transfers at once, a "
    "quarter of them of a namespace",
    decoded="in a child; all of them have a quarter of the memory of the container",
    tests=(
        "attacks/test_git_cache.py::test_a_pack_is_stopped_where_the_share_of_its_namespace_ends",
        "attacks/test_git_cache.py::test_a_namespace_leaves_others_a_quarter",
        "attacks/test_git_cache.py::test_packs_that_never_become_whole_are_not_kept",
        "attacks/test_git_transfers.py::test_a_slow_host_takes_no_turns_from_other_namespaces",
    ),
)
