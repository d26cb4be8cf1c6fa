"""The programs of kardinal as processes that are started again whenever they were killed.

Processes are forked from one that has imported everything, so that a start takes as long as reading the caches does.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

import pytest

from kardinal_local.plane import LocalPlane
from tests.resilience.lives.clock import FastClock
from tests.resilience.lives.mortal import Kill, Moment, Part, Settings, run
from tests.support.logged import BUG
from tests.support.server import PlaneServer

__all__ = ["APART", "Kills", "Programs", "processes"]

_FORKS = multiprocessing.get_context("forkserver")
_SECONDS = 60.0

APART: tuple[Part, ...] = ("controller", "agent")
"""The agent is a process of its own."""

GAP_AT_HOST = 4
"""Effects at a host between two deaths at most, where the others do not count."""


@dataclass(frozen=True)
class Kills:
    """The number of deaths, and where they are.

    `gap`: effects between two of them at most. `delay`: seconds from the beginning of an effect to a death during it at
    most. `at_host`: the share of the agent's that are at an effect at a host.
    """

    number: int
    gap: int = 60
    delay: float = 0.02
    at_host: float = 0.0


@pytest.fixture(scope="session")
def processes(private_temporary_directory: Path) -> None:
    """Start the process that the others are forked from; it ends with this one."""
    _FORKS.set_forkserver_preload(["pytest", "tests.resilience.lives.preload"])
    with pytest.MonkeyPatch.context() as patch:
        # Its socket stays until the end of this process, when the temporary directory of the run is gone.
        patch.delenv("TMPDIR")
        patch.setattr(tempfile, "tempdir", None)
        forkserver.ensure_running()


class Programs:
    """Controller and agent on a plane; after their deaths they live on.

    `parts` are the processes; without it chance decides whether the agent is one of its own. `killed`: the number of
    processes that were killed.
    """

    def __init__(
        self,
        plane: LocalPlane,
        directory: Path,
        *,
        clock: FastClock,
        random: Random,
        kills: Kills,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self._server = PlaneServer(plane, clock)  # type: ignore[arg-type]
        self._directory = directory
        self._clock = clock
        self._random = random
        self._kills = kills
        self._chances = 0
        self.killed = 0
        by_chance: tuple[Part, ...] = APART if random.random() < 0.5 else ("everything",)
        self._parts = parts or by_chance
        self._deaths = directory / "deaths"
        self._log = directory / "log"
        self._running: dict[Part, multiprocessing.process.BaseProcess] = {}
        self._keeping: list[asyncio.Task[None]] = []
        self._stopping = False

    @property
    def deaths(self) -> list[str]:
        """Return where processes have died, in order."""
        return self._deaths.read_text().splitlines() if self._deaths.exists() else []

    @property
    def log(self) -> str:
        """Return the last that the programs have logged."""
        return self._log.read_text(errors="replace")[-8000:] if self._log.exists() else ""

    @property
    def bugs(self) -> list[str]:
        """Return what the programs have logged as bugs of their own."""
        lines = self._log.read_text(errors="replace").splitlines() if self._log.exists() else []
        return [line for line in lines if BUG in line]

    def kill(self, part: Part) -> None:
        """End a process now; it is started again."""
        self._running[part].kill()

    async def __aenter__(self) -> Self:
        self._keeping = [asyncio.create_task(self._keep(part)) for part in self._parts]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping = True
        for process in self._running.values():
            process.terminate()
        try:
            async with asyncio.timeout(_SECONDS):
                await asyncio.gather(*self._keeping)
        except TimeoutError:
            if exc is None:
                raise AssertionError(f"not stopped within {_SECONDS:.0f} s") from None
        finally:
            for process in self._running.values():
                with suppress(ValueError):  # closed, because it has ended
                    process.kill()

    async def _keep(self, part: Part) -> None:
        while True:
            process = self._running[part] = self._started(part)
            await _ended(process)
            process.join()
            code = process.exitcode
            process.close()
            if self._stopping:
                del self._running[part]
                return
            assert code == -signal.SIGKILL, f"{part} ended with {code}:\n{self.log}"
            self.killed += 1

    def _started(self, part: Part) -> multiprocessing.process.BaseProcess:
        settings = Settings(
            part=part,
            kubeconfig=self._server.kubeconfig_for("agent" if part == "agent" else "controller"),
            directory=self._directory / f"git-{part}",
            clock=self._clock,
            kill=self._chosen(part),
            log=self._log,
            deaths=self._deaths,
        )
        process = _FORKS.Process(target=run, args=(settings,), daemon=True)
        process.start()
        return process

    def _chosen(self, part: Part) -> Kill | None:
        if self._chances == self._kills.number:
            return None
        self._chances += 1
        moment = self._random.choice(_MOMENTS)
        at_host = part == "agent" and self._kills.at_host > 0 and self._random.random() < self._kills.at_host
        effect = self._random.randint(1, GAP_AT_HOST if at_host else self._kills.gap)
        return Kill(effect, moment, self._random.uniform(0.0, self._kills.delay), at_host=at_host)


_MOMENTS: Sequence[Moment] = ("before", "during", "after")


async def _ended(process: multiprocessing.process.BaseProcess) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(process.sentinel, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(process.sentinel)
