"""A child that is started once and answers one request after the other.

Requests and answers are frames: eight bytes with the length, then so many bytes. The child reads requests from standard
input and writes answers to standard output. When its standard input is closed, as the kernel does if this process is
killed, it must end.

The child is killed, with all processes that it started, as soon as a request fails: it took too long or used too much
memory, its answer is too long, or it ended. What it wrote to standard error is for people, and its end is kept.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Final, cast

from kardinal.objects.errors import KardinalError
from kardinal.processes.children import close_pipes, kill_group, reap_group
from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped, WorkerEnded
from kardinal.processes.memory_shares import LOOKED_AT_EVERY, MemoryPool

__all__ = ["FRAME_HEADER", "AnswerTooLong", "WorkerProcess"]

FRAME_HEADER: Final = 8
"""The bytes of a frame that hold its length, the highest first."""
_CHUNK: Final = 1 << 20
_KEPT_TEXT: Final = 4 << 10
_ENDS_WITHIN: Final = 5.0
"""Seconds until a child that has closed its output is killed."""


class AnswerTooLong(ChildStopped):
    """A worker was killed because its answer has more bytes than allowed."""

    transient = False

    def __init__(self, name: str, longest: int) -> None:
        KardinalError.__init__(self, f"{name} answers with more than {longest >> 20} MiB")


class WorkerProcess:
    """A running worker. `name` describes it in errors, for example `the worker of catalogs`.

    All methods block, and belong to one thread at a time, except `kill`.
    """

    def __init__(
        self, arguments: Sequence[str], *, name: str, environment: Mapping[str, str], memory: MemoryPool
    ) -> None:
        self._name = name
        self._memory = memory
        self._closed = False
        self._text = bytearray()
        self._process = subprocess.Popen(  # noqa: S603 - the program is ours, its arguments are checked by our callers
            arguments,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._stdin = cast(IO[bytes], self._process.stdin)
        self._stdout = cast(IO[bytes], self._process.stdout)
        self._stderr = cast(IO[bytes], self._process.stderr)
        self._pause = threading.Event()
        memory.enter(self._process.pid)

    @property
    def ended(self) -> bool:
        """Return whether the child has ended; it answers no more then.

        It is not reaped by the question: until its group was killed, no other process may get its number.
        """
        if self._closed:
            return True
        return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ask(self, request: bytes, *, deadline: float, longest: int) -> bytes:
        """Return the answer to a request. `deadline`: in seconds. `longest`: the most bytes of the answer.

        Raises `ChildStopped`; afterwards the child is dead.
        """
        try:
            return self._exchange(request, time.monotonic() + deadline, deadline, longest)
        except BaseException:
            self.close()
            raise

    def kill(self) -> None:
        """Kill the child; an `ask` of another thread fails."""
        if not self._closed:
            kill_group(self._process)

    def close(self) -> None:
        """Kill the child, and wait for its end."""
        if self._closed:
            return
        self._closed = True
        self._memory.leave(self._process.pid)
        # Also if the child has ended, unless it was reaped: the processes that it started are of its group.
        if self._process.returncode is None:
            kill_group(self._process)
        self._process.wait()
        reap_group(self._process.pid)
        close_pipes(self._process)

    def _exchange(self, request: bytes, ends: float, deadline: float, longest: int) -> bytes:
        if self._closed:
            raise WorkerEnded(self._name, self._process.returncode or 0, "")
        os.set_blocking(self._stdin.fileno(), False)
        left = memoryview(len(request).to_bytes(FRAME_HEADER) + request)
        answer = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdin, selectors.EVENT_WRITE)
            selector.register(self._stdout, selectors.EVENT_READ)
            selector.register(self._stderr, selectors.EVENT_READ)
            while True:
                self._memory.check(self._process.pid, self._name)
                if time.monotonic() >= ends:
                    raise ChildDeadlineExceeded(self._name, deadline)
                ended = self.ended
                ready = selector.select(LOOKED_AT_EVERY)
                # A process that the child started may still hold its output.
                if ended and not any(key.fileobj is self._stdout for key, _ in ready):
                    raise self._ended_early()
                for key, _ in ready:
                    if key.fileobj is self._stdin:
                        left = left[self._write(left) :]
                        more = bool(left)
                    elif key.fileobj is self._stderr:
                        more = self._keep_text()
                    else:
                        more = self._read_into(answer)
                    if not more:
                        selector.unregister(key.fileobj)
                length = int.from_bytes(answer[:FRAME_HEADER])
                if len(answer) < FRAME_HEADER:
                    continue
                if length > longest:
                    raise AnswerTooLong(self._name, longest)
                if len(answer) >= FRAME_HEADER + length:
                    return bytes(answer[FRAME_HEADER : FRAME_HEADER + length])

    def _write(self, left: memoryview) -> int:
        """Write a part of the request, and return its length; a child that has ended is seen by its output."""
        try:
            return os.write(self._stdin.fileno(), left[:_CHUNK])
        except BlockingIOError:
            return 0
        except BrokenPipeError:
            return len(left)

    def _read_into(self, answer: bytearray) -> bool:
        chunk = os.read(self._stdout.fileno(), _CHUNK)
        if not chunk:
            raise self._ended_early()
        answer += chunk
        return True

    def _keep_text(self) -> bool:
        chunk = os.read(self._stderr.fileno(), _CHUNK)
        self._text += chunk
        del self._text[:-_KEPT_TEXT]
        return bool(chunk)

    def _ended_early(self) -> WorkerEnded:
        ends = time.monotonic() + _ENDS_WITHIN
        while not self.ended and time.monotonic() < ends:
            self._pause.wait(LOOKED_AT_EVERY)
        kill_group(self._process)
        code = self._process.wait()
        os.set_blocking(self._stderr.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while self._keep_text():
                pass
        return WorkerEnded(self._name, code, self._text.decode("utf-8", "replace"))
