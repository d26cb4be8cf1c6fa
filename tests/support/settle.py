"""Letting a world come to rest, and moving its time only then.

Controllers, API server, Git and the network run for real and take what real time they need; a virtual clock stands
still meanwhile. `settle` waits until nothing is left to do at this instant: no key in a queue, no request or job under
way, and every informer holding exactly what the API server holds. Only then may virtual time move on, and only to the
next timer, so that a test of an hour sees every moment of it in order, however slow the machine is. On a real clock
time passes by itself, and rest is what lies between two timers.

The trap is work that is visible nowhere for an instant, such as a task between the end of one await and the start of
the next. So rest must be seen several times in a row, with turns of the event loop between and no request in between.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

import pytest

from tests.support.clock import WorldClock

__all__ = ["REAL_SECONDS", "CountingExecutor", "RestingWorld", "difference", "run_until", "settle", "table"]


Answer = TypeVar("Answer")

REAL_SECONDS = 40.0
"""How long a world may be busy without coming to rest before the test is told what keeps it busy."""

_LOOKS = 4
_TURNS = 5
_SHORTEST_PAUSE = 0.001
_LONGEST_PAUSE = 0.01
"""Seconds of real time between two looks at a world that is busy: the longer it has been, the longer."""


class RestingWorld(Protocol):
    """The part of a world that `settle` needs."""

    @property
    def clock(self) -> WorldClock: ...

    def unrest(self) -> list[str]:
        """Return what is still under way, a line each; empty when the world is at rest."""
        ...

    def pulse(self) -> int:
        """Return a number that grows with every request the world's servers answer."""
        ...

    async def describe(self) -> str:
        """Return the state of the world, for a person who wonders why a test failed."""
        ...


class CountingExecutor(concurrent.futures.ThreadPoolExecutor):
    """The event loop's threads, with the number of jobs they have not finished."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="world")
        self.pending: set[concurrent.futures.Future[Any]] = set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[Any]:
        job = super().submit(fn, *args, **kwargs)
        self.pending.add(job)
        job.add_done_callback(self.pending.discard)
        return job


async def settle(world: RestingWorld, *, real_seconds: float = REAL_SECONDS) -> None:
    """Return when nothing more will happen unless time passes or another client writes."""
    deadline = time.monotonic() + real_seconds
    seen = 0
    pulse = -1
    pause = _SHORTEST_PAUSE
    await _turn()
    while seen < _LOOKS:
        unrest = world.unrest()
        if not unrest and world.pulse() == pulse:
            seen += 1
            await _turn()
            continue
        seen = 0
        pulse = world.pulse()
        if time.monotonic() > deadline:
            busy = "\n".join(f"  {line}" for line in unrest) or "  requests keep coming"
            report = f"not at rest after {real_seconds:g} s:\n{busy}\n{await world.describe()}"
            pytest.fail(report, pytrace=False)
        if unrest:
            # Threads, children and sockets need the processor more than this loop does.
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        else:
            await _turn()


async def _turn() -> None:
    """Give callbacks and tasks that are ready their turns."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)


async def run_until(
    world: RestingWorld,
    condition: Callable[[], Answer | Awaitable[Answer]],
    *,
    within: timedelta = timedelta(hours=1),
    real_seconds: float = REAL_SECONDS,
    what: str | None = None,
) -> Answer:
    """Let the world live until `condition` holds; returns what it answered.

    The condition is asked whenever the world is at rest, before time moves to the next timer. It must hold `within`
    that time on a virtual clock; a real one has a patience of its own. A failure calls it `what`, or shows its source.
    """
    patience = world.clock.patience(within)
    end = world.clock.monotonic() + patience.total_seconds()
    while True:
        await settle(world, real_seconds=real_seconds)
        answer = condition()
        held = await answer if inspect.isawaitable(answer) else answer
        if held:
            return held
        if not await world.clock.go_on(end):
            waited = what or source_of(condition)
            pytest.fail(f"not within {patience}:\n  {waited}\n{await world.describe()}", pytrace=False)


def source_of(condition: Callable[..., Any]) -> str:
    """Return the text of a condition, for a failure message."""
    return inspect.getsource(condition).strip() if inspect.isfunction(condition) else repr(condition)


def difference(held: Mapping[Any, object], served: Mapping[Any, object]) -> Iterable[str]:
    """Return how the revisions of a copy differ from the server's, by name."""
    for key in sorted(held.keys() | served.keys(), key=str):
        if held.get(key) != served.get(key):
            yield f"{key}: holds {held.get(key, 'nothing')}, the server has {served.get(key, 'nothing')}"


def table(title: str, rows: Sequence[str]) -> str:
    """Return a titled list for a failure message."""
    return "\n".join([f"{title}:", *(f"  {row}" for row in rows or ["none"])])
