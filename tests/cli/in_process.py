"""The command in this process, in a thread: what most commands do takes a tenth of what a process of its own takes.

A module whose commands need no process of their own imports the fixture `cli` from here. A process is needed for
signals, terminals, limits, and commands at the same time; that all commands run as one is shown by the rest.
"""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

from kardinal.cli.main import main
from tests.cli.conftest import Cli, Finished, home_of
from tests.support.world import World

__all__ = ["InProcess", "cli"]

_ONE_AT_A_TIME = threading.Lock()
"""Environment and working directory are of the whole process."""


class _Screen(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class InProcess(Cli):
    """The command, pointed at one API server, or at none."""

    async def attempt(self, *arguments: str) -> Finished:
        return await asyncio.to_thread(self.run, *arguments)

    def run(self, *arguments: str) -> Finished:
        """Run a command to the end where there is no event loop."""
        with self._place():
            done = CliRunner().invoke(main, arguments, prog_name="kardinal")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Finished(done.exit_code, done.stdout, done.stderr)

    async def on_screen(self, *arguments: str, columns: int) -> list[str]:
        """Return the lines of a command that succeeds on what it takes for a terminal of so many columns."""
        return await asyncio.to_thread(self._shown, arguments, columns)

    def _shown(self, arguments: tuple[str, ...], columns: int) -> list[str]:
        screen = _Screen()
        with self._place(COLUMNS=str(columns), TERM="xterm", NO_COLOR="1"), redirect_stdout(screen):
            main(arguments, prog_name="kardinal", standalone_mode=False)
        return screen.getvalue().splitlines()

    @contextmanager
    def _place(self, **variables: str) -> Iterator[None]:
        """Have the environment and the working directory of the command."""
        assert _ONE_AT_A_TIME.acquire(blocking=False), "commands at the same time need processes"
        before = Path.cwd()
        try:
            os.chdir(self._directory)
            with mock.patch.dict(os.environ, self.environment | variables, clear=True):
                yield
        finally:
            os.chdir(before)
            _ONE_AT_A_TIME.release()

    def process(self) -> Cli:
        """Return the same command as a process of its own."""
        return Cli(Path(self.environment["KUBECONFIG"]), Path(self.environment["HOME"]))


@pytest.fixture
def cli(world: World) -> InProcess:
    return InProcess(*home_of(world))
