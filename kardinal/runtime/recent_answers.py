"""Answers of the API server that are remembered for a while, and asked for once however many wait for them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kardinal.clock import Clock

__all__ = ["RecentAnswers"]

PARALLEL = 16
"""The most questions at once."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    value: T
    at: float


class RecentAnswers(Generic[T]):
    """A cache of at most `most` answers. An error is raised to all who wait, and is not remembered."""

    def __init__(self, *, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._answers: OrderedDict[Hashable, _Answer[T]] = OrderedDict()
        self._asking: dict[Hashable, asyncio.Task[T]] = {}
        self._places = asyncio.Semaphore(PARALLEL)

    def __len__(self) -> int:
        """Return the number of answers in the cache."""
        return len(self._answers)

    async def get(self, key: Hashable, ask: Callable[[], Awaitable[T]], *, max_age: float) -> T:
        """Return the answer for a key; call `ask` if there is none of the last `max_age` seconds."""
        known = self._answers.get(key)
        if known is not None and self._clock.monotonic() < known.at + max_age:
            return known.value
        task = self._asking.get(key)
        if task is None:
            task = asyncio.create_task(self._ask(key, ask))
            self._asking[key] = task
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(task)

    def forget(self, key: Hashable) -> None:
        """Ask again at the next `get`."""
        self._answers.pop(key, None)

    async def stop(self) -> None:
        """Cancel the questions in progress."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        async with self._places:
            # The age counts from the question: the answer may be about that moment.
            asked_at = self._clock.monotonic()
            value = await ask()
        self._answers[key] = _Answer(value, asked_at)
        self._answers.move_to_end(key)
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)
        return value
