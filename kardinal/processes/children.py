"""Run child processes that can be killed together with all processes that they started.

A program that waits for a peer, or processes files of others, may be slow, endless or hostile, and a library call that
blocks a thread cannot be cancelled. So such work runs in a child with its own process group, which is killed as a whole
if it takes too long or uses too much memory. The child is started by a shell, which sets the limits on memory and
files. A watcher in that shell kills the group when standard input is closed, as the kernel does if this process is
killed.

When the program stops, a child whose work must not be interrupted gets time to finish; all other children are killed.

A child has two output pipes: standard output with lines for the program (`Children.run`, `feed`), and standard error
with text for people, of which the end is kept. Both are limited, because others influence their length.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped
from kardinal.processes.memory_shares import LOOKED_AT_EVERY, MemoryPool

__all__ = ["BLOCK", "Child", "ChildLimits", "Children", "Ended", "close_pipes", "kill_group", "reap_group"]

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
_KEPT_TEXT = 64 << 10
_LONGEST_LINE = 64 << 10
_CHUNK = 64 << 10
BLOCK = 512
"""The size in bytes of the unit in which `ulimit -f` counts the length of files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLimits:
    """The limits of a child: `deadline` in seconds, and `file`, the maximum size in bytes of a file that it writes."""

    deadline: float
    file: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a child that has ended: its exit code, and the end of its standard error."""

    code: int
    text: str


Child = subprocess.Popen[bytes]
"""A child that was started."""


def _ignore(line: str) -> None:
    """Ignore a line."""


class Children:
    """The children of one owner.

    `close` kills all of them. `stop`, `wait` and `kill`, called in this order, let those finish that were started with
    `may_finish`. Several owners can share one `memory`. `ending` is the maximum time in seconds that `wait` waits for
    them; it defaults to 0.
    """

    def __init__(self, memory: MemoryPool, *, ending: float = 0.0) -> None:
        self._memory = memory
        self._ending = ending
        self._changed = threading.Condition()
        self._running: dict[subprocess.Popen[bytes], bool] = {}
        """The running children, each with its `may_finish`."""
        self._closed = False

    def close(self) -> None:
        """Prevent new children, and kill all running ones."""
        self.stop()
        self.kill()

    def stop(self) -> None:
        """Prevent new children, and kill all running ones without `may_finish`."""
        with self._changed:
            self._closed = True
            for process, may_finish in self._running.items():
                if not may_finish:
                    kill_group(process)

    def wait(self) -> None:
        """Wait until all children have ended, for at most `ending` seconds. Blocks."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, self._ending)

    def kill(self) -> None:
        """Kill all children that are still running."""
        with self._changed:
            for process in self._running:
                kill_group(process)

    def run(
        self,
        arguments: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str],
        limits: ChildLimits,
        files: Sequence[int] = (),
        feed: Callable[[str], None] = _ignore,
        look: Callable[[], float] | None = None,
        may_finish: bool = False,
    ) -> Ended:
        """Run a child until it ends. Blocks.

        Raises `ChildStopped`, or a subclass such as `ChildDeadlineExceeded`, if the child was killed.

        `name` describes the child in errors, for example the URL of a repository. `files`: the numbers of open files
        that the child inherits; defaults to none. `feed` is called with each line of its standard output. `look` is
        called while the child runs: it returns the seconds until its next call, and an exception from it kills the
        child. `may_finish`: `stop` lets the child finish; defaults to False.
        """
        process = self.start(
            arguments, name=name, environment=environment, limits=limits, files=files, may_finish=may_finish
        )
        return self.follow(process, name=name, limits=limits, feed=feed, look=look)

    def start(
        self,
        arguments: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str],
        limits: ChildLimits,
        files: Sequence[int] = (),
        may_finish: bool = False,
    ) -> Child:
        """Start a child, which `follow` or `discard` must be called with. The arguments are those of `run`."""
        memory = self._memory.mapped // 1024
        blocks = limits.file // BLOCK
        command = ["/bin/sh", "-c", _SCRIPT, "sh", str(memory), str(blocks), *arguments]
        with self._changed:
            if self._closed:
                raise ChildStopped(name)
            process = subprocess.Popen(  # noqa: S603 - the program is ours, its arguments are checked by our callers
                command,
                env=dict(environment),
                pass_fds=files,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            self._running[process] = may_finish
        return process

    def follow(
        self,
        process: Child,
        *,
        name: str,
        limits: ChildLimits,
        feed: Callable[[str], None] = _ignore,
        look: Callable[[], float] | None = None,
    ) -> Ended:
        """Wait until a child ends, which has its deadline and its share of memory from now on. Blocks; see `run`."""
        text = bytearray()
        # Real time, because the child may wait for another machine.
        started = time.monotonic()

        def check() -> float:
            self._memory.check(process.pid, name)
            left = started + limits.deadline - time.monotonic()
            if left <= 0:
                raise ChildDeadlineExceeded(name, limits.deadline)
            return min(left, LOOKED_AT_EVERY, look() if look is not None else left)

        self._memory.enter(process.pid)
        try:
            _follow(process, feed, text, check)
        finally:
            self._memory.leave(process.pid)
            closed, code = self.discard(process)
        if closed and code < 0:
            raise ChildStopped(name)
        return Ended(code, text.decode("utf-8", "replace"))

    def discard(self, process: Child) -> tuple[bool, int]:
        """Kill what is left of a child, and return whether this is closed, and the child's exit code."""
        # The group is killed before the wait, because until then no other process can have its number.
        with self._changed:
            del self._running[process]
            closed = self._closed
            self._changed.notify_all()
        kill_group(process)
        code = process.wait()
        close_pipes(process)
        reap_group(process.pid)
        return closed, code


def _follow(
    process: subprocess.Popen[bytes], feed: Callable[[str], None], text: bytearray, check: Callable[[], float]
) -> None:
    """Read both output pipes of a child until they are closed."""
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
                        feed(line.decode("utf-8", "replace"))


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group of a child that was started in a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def close_pipes(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a child that has ended."""
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def reap_group(group: int) -> None:
    """Wait for processes that the child has started: process 1 of a container inherits them."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-group, 0)
