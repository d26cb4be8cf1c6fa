"""Put the programs of expressions into the cache of `kardinal.cel` before they are needed.

Parsing is slow, up to 100 ms for the longest expression, and everything that asks for a program afterwards is a
function that does not wait. So a reconciler prepares what it is about to use. Little is compiled here, expression by
expression with pauses; more than that is parsed in another process, which is started when it is first needed and ended
when it has been idle. What it answers is turned into programs here, in slices again.
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
"""Characters of all expressions that are compiled on the event loop, 10 ms at a time at most."""

INLINE_EXPRESSION: Final = 256
"""Characters of one of them."""

_BATCH: Final = 16 << 10
"""Characters after which another request has its turn."""

IDLE: Final = 60.0
"""Seconds after which a process without work ends."""

DEADLINE: Final = 60.0
"""Seconds for one batch, a hundred times what it takes."""

_SLICE: Final = 0.005

_COMMAND: Final = (sys.executable, "-m", "kardinal_controller.expressions.worker")


class WorkerFailed(Exception):
    """The process died, or took too long; the request may be made again."""

    def __init__(self) -> None:
        super().__init__("the process that compiles expressions has failed; it is started again with the next request")


class ExpressionCompiler:
    """Implements `kardinal.runtime.Runnable`: what it started ends with the program."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Start nothing yet: most control planes never need the process."""

    async def stop(self) -> None:
        self._stay()
        await self._end()

    async def prepare(self, sources: Iterable[str]) -> Programs:
        """Return each program, or what is wrong with its text, and leave them in the cache; raises WorkerFailed.

        The cache is smaller than the largest Graph: who needs many of them takes them from here.
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
                # Half an answer may stand in the pipe.
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
        """Return the ends of the process's pipes, of a new process where there is none or it was told to end."""
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing() or process.returncode is not None:
            await self._end()
            # A signal from the terminal is for the program, which ends this process itself.
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
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        await process.communicate()


def _batches(sources: list[str]) -> Iterator[list[str]]:
    """Yield the sources in parts, between which another request has its turn."""
    batch, size = list[str](), 0
    for source in sources:
        batch.append(source)
        size += len(source)
        if size > _BATCH:
            yield batch
            batch, size = [], 0
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
            error = cel.CompileError(position, message)
            cel.remember(source, error)
            return error
        case syntax:
            return cel.program_of(source, syntax)


class _Pause:
    """Lets others run once a slice of CPU time is used up."""

    def __init__(self) -> None:
        self._begun = time.thread_time()

    async def if_due(self) -> None:
        if time.thread_time() - self._begun > _SLICE:
            await asyncio.sleep(0)
            self._begun = time.thread_time()
