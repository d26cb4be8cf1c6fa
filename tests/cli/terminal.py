"""A command on a pseudo-terminal, as a person sees it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import signal
import struct
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.cli.conftest import Cli
from tests.support.commands import KARDINAL

__all__ = ["Terminal", "on_terminal", "terminal"]

DEADLINE = 60.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A running command and everything that it wrote to its terminal, without control sequences."""

    def __init__(self, process: asyncio.subprocess.Process, reader: int) -> None:
        self._process = process
        self._reader = reader
        self._raw = b""
        self._news = asyncio.Event()
        asyncio.get_running_loop().add_reader(reader, self._read)

    @property
    def text(self) -> str:
        return _CONTROL.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")

    def type(self, text: str) -> None:
        os.write(self._reader, text.encode())

    async def says(self, words: str) -> None:
        """Return as soon as the terminal has shown some words."""
        async with asyncio.timeout(DEADLINE):
            while words not in self.text:
                self._news.clear()
                await self._news.wait()

    async def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        self._process.send_signal(signal.SIGINT)
        return await self.ended()

    async def ended(self) -> int:
        async with asyncio.timeout(DEADLINE):
            code = await self._process.wait()
        self._read()
        return code

    async def close(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._reader)
        os.close(self._reader)

    def _read(self) -> None:
        try:
            while chunk := os.read(self._reader, 65536):
                self._raw += chunk
        except BlockingIOError:
            pass
        except OSError:
            # The other end of the terminal is closed.
            asyncio.get_running_loop().remove_reader(self._reader)
        self._news.set()


@asynccontextmanager
async def terminal(cli: Cli, *arguments: str, columns: int) -> AsyncIterator[Terminal]:
    """Run a command on a terminal of so many columns."""
    reader, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    os.set_blocking(reader, False)
    process = await asyncio.create_subprocess_exec(
        KARDINAL,
        *arguments,
        env={**cli.environment, "TERM": "xterm", "NO_COLOR": "1"},
        cwd=cli.environment["HOME"],
        stdin=side,
        stdout=side,
        stderr=asyncio.subprocess.DEVNULL,
    )
    os.close(side)
    running = Terminal(process, reader)
    try:
        yield running
    finally:
        await running.close()


async def on_terminal(cli: Cli, *arguments: str, columns: int) -> list[str]:
    """Return the lines of a command that succeeds."""
    async with terminal(cli, *arguments, columns=columns) as running:
        assert await running.ended() == 0, running.text
        return running.text.splitlines()
