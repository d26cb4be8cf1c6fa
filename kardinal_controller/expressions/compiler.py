"""Put the programs of expressions into the cache of `kardinal.cel` before they are needed.

Parsing is slow, up to 100 ms for the longest expression, and the functions that use programs cannot wait. A reconciler
therefore prepares the expressions that it is about to use. A small amount is compiled on the event loop, with pauses
between expressions. A larger amount is parsed in another process, which is started at its first use and ended after an
idle time; its syntax trees are turned into programs here, in slices.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterable, Iterator
from typing import Final

from kardinal import cel
from kardinal.graph.programs import Programs
from kardinal_controller.expressions.worker import HEADER

__all__ = ["ExpressionCompiler", "WorkerFailed"]

INLINE: Final = 8 << 10
"""The most characters of all expressions that are compiled on the event loop, in slices of 10 ms at most."""

INLINE_EXPRESSION: Final = 256
"""The most characters of one expression that is compiled on the event loop."""

_BATCH: Final = 16 << 10
"""The most characters of one batch; between batches, other requests have their turn."""

IDLE: Final = 60.0
"""Seconds without work after which the process is ended."""

DEADLINE: Final = 60.0
"""The most seconds for one batch, a hundred times the usual duration."""

_SLICE: Final = 0.005

_COMMAND: Final = (sys.executable, "-P", "-m", "kardinal_controller.expressions.worker")
"""The command of the process.

`-P`: otherwise modules in the current directory of `kardinal local up` would be imported instead of ours.
"""


class WorkerFailed(Exception):
    """The process died, or took too long; the request can be repeated."""

    def __init__(self) -> None:
        super().__init__("the process that compiles expressions has failed; it is started again with the next request")


class ExpressionCompiler:
    """Implements `kardinal.runtime.Runnable`: its process ends with the program."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Do nothing: the process is started at its first use, which most control planes never have."""

    async def stop(self) -> None:
        self._stay()
        await self._end()

    async def prepare(self, sources: Iterable[str]) -> Programs:
        """Compile `sources` into the cache, and return the program or error of each; raises WorkerFailed.

        The cache is smaller than the largest Graph, so a caller with many expressions must use the returned programs.
        """
        found: dict[str, cel.Program | cel.CompileError] = {}
        missing: list[str] = []
        for source in dict.fromkeys(sources):
            if cel.is_known(source):
                found[source] = _compiled(source)
            else:
                missing.append(source)
        beside = sum(map(len, missing)) > INLINE or any(len(source) > INLINE_EXPRESSION for source in missing)
        pause = _Pause()
        for batch in _batches(missing):
            syntax = await self._parse(batch) if beside else {}
            for source in batch:
                found[source] = _received(source, syntax[source]) if beside else _compiled(source)
                await pause.if_due()
        return found

    async def _parse(self, sources: list[str]) -> dict[str, bytes]:
        async with self._turn:
            self._stay()
            try:
                async with asyncio.timeout(DEADLINE):
                    answer = await self._ask(pickle.dumps(sources))
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                await self._end()
                raise WorkerFailed from None
            except asyncio.CancelledError:
                # The pipe may contain half an answer.
                await self._end()
                raise
            self._idle = asyncio.get_running_loop().call_later(IDLE, self._leave)
            return dict(zip(sources, pickle.loads(answer), strict=True))  # noqa: S301 - from the process started here

    async def _ask(self, request: bytes) -> bytes:
        reader, writer = await self._streams()
        writer.write(HEADER.pack(len(request)) + request)
        await writer.drain()
        (size,) = HEADER.unpack(await reader.readexactly(HEADER.size))
        return await reader.readexactly(size)

    async def _streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the pipes of the process; starts one if there is none, or if it was told to end."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing() or process.returncode is not None:
            await self._end()
            # In a session of its own, because signals of the terminal are for the program, which ends this process.
            process = await asyncio.create_subprocess_exec(
                *_COMMAND, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
            )
            self._process = process
        assert process.stdout is not None and process.stdin is not None  # noqa: S101, PT018 - both are pipes
        return process.stdout, process.stdin

    def _stay(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _leave(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    async def _end(self) -> None:
        process = self._process
        self._process = None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _batches(sources: list[str]) -> Iterator[list[str]]:
    """Yield the sources in batches of about `_BATCH` characters."""
    batch = list[str]()
    size = 0
    for source in sources:
        batch.append(source)
        size += len(source)
        if size > _BATCH:
            yield batch
            batch = []
            size = 0
    if batch:
        yield batch


def _compiled(source: str) -> cel.Program | cel.CompileError:
    try:
        return cel.compile(source)
    except cel.CompileError as error:
        return error


def _received(source: str, pickled: bytes) -> cel.Program | cel.CompileError:
    match pickle.loads(pickled):  # noqa: S301 - from the process started here
        case (int(position), str(message)):
            error = cel.CompileError(position, message, source)
            cel.remember(source, error)
            return error
        case syntax:
            return cel.program_of(source, syntax)


class _Pause:
    """Gives way to other tasks when a slice of CPU time is used up."""

    def __init__(self) -> None:
        self._begun = time.thread_time()

    async def if_due(self) -> None:
        if time.thread_time() - self._begun > _SLICE:
            await asyncio.sleep(0)
            self._begun = time.thread_time()
