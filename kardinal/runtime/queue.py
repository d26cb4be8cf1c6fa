"""The work queue: each key at most once, never to two workers, urgent ones first, none for ever last.

One entry per key holds everything known about its next run. Adding a key again merges: the higher priority and the
earlier time win, so an event takes the place of a pending delay. A key that is being worked on may be added; it
becomes ready but is handed out only when its worker is done, so nothing that happened during the run is missed.

Heaps are never searched: an entry that changed gets a new order number and its old positions, recognised by their
stale number, are dropped when they surface. Every tenth hand-out takes whatever has waited longest instead of the
most urgent, because a steady stream of events would otherwise starve the initial list for ever.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from kardinal.objects import Key
from kardinal.runtime.clock import Clock, Timer

__all__ = ["INITIAL_PRIORITY", "PriorityQueue", "WorkItem"]

INITIAL_PRIORITY = -100
AGEING = 10


class WorkItem(NamedTuple):
    """A key handed out to a worker, with the priority it had and the seconds it was ready."""

    key: Key
    priority: int
    waited: float


@dataclass(slots=True)
class _Entry:
    priority: int
    order: int
    due: float | None  # None: ready
    since: float


class PriorityQueue:
    """Keys that want a run."""

    def __init__(self, *, clock: Clock) -> None:
        self.added = 0
        self.processing: dict[Key, float] = {}
        self.depth: Counter[int] = Counter()
        self._clock = clock
        self._entries: dict[Key, _Entry] = {}
        self._urgent: list[tuple[int, int, Key]] = []
        self._oldest: list[tuple[int, Key]] = []
        self._delayed: list[tuple[float, int, Key]] = []
        self._orders: Iterator[int] = count()
        self._hand_outs = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: Timer | None = None
        self._timer_due: float | None = None
        self._closed = False

    def __len__(self) -> int:
        """How many keys are ready; delayed ones do not count."""
        return self.depth.total()

    @property
    def delayed(self) -> int:
        return len(self._entries) - len(self)

    def add(self, key: Key, *, priority: int = 0, after: float = 0.0) -> None:
        """Ask for a run of `key`, now or `after` seconds from now."""
        if self._closed:
            return
        now = self._clock.monotonic()
        due = now + after if after > 0 else None
        entry = self._entries.get(key)
        if entry is None:
            self.added += 1
            entry = self._entries[key] = _Entry(priority, next(self._orders), due, now)
            if due is None:
                self._make_ready(key, entry, now)
            else:
                heapq.heappush(self._delayed, (due, entry.order, key))
        elif entry.due is None:
            if priority > entry.priority:
                self._leave_class(entry)
                entry.priority = priority
                self._make_ready(key, entry, entry.since)
        else:
            entry.priority = max(entry.priority, priority)
            if due is None:
                self._make_ready(key, entry, now)
            elif due < entry.due:
                entry.due = due
                heapq.heappush(self._delayed, (due, entry.order, key))
        self._arm_timer()

    async def get(self) -> WorkItem | None:
        """Return the next key, or None when the queue is shut down. The caller must call `done` with it."""
        while not self._closed:
            item = self._take()
            if item is not None:
                return item
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # Woken and cancelled at the same moment: the key still wants a worker.
                if getter.done() and not getter.cancelled():
                    self._wake_one()
                raise
            finally:
                if getter in self._getters:
                    self._getters.remove(getter)
        return None

    def done(self, key: Key) -> None:
        """Return the run of `key` is over; if it was added meanwhile, it may be handed out again."""
        del self.processing[key]
        entry = self._entries.get(key)
        if entry is not None and entry.due is None:
            self._offer(key, entry)

    def shut_down(self) -> None:
        """Hand out nothing more; wake every worker that waits."""
        self._closed = True
        self._entries.clear()
        self.depth.clear()
        self._arm_timer()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _take(self) -> WorkItem | None:
        self._drop_stale()
        if not self._urgent:
            return None
        self._hand_outs += 1
        longest_waiting = self._hand_outs % AGEING == 0
        key = heapq.heappop(self._oldest)[1] if longest_waiting else heapq.heappop(self._urgent)[2]
        entry = self._entries.pop(key)
        self._leave_class(entry)
        now = self._clock.monotonic()
        self.processing[key] = now
        return WorkItem(key, entry.priority, now - entry.since)

    def _drop_stale(self) -> None:
        while self._urgent and not self._is_current(self._urgent[0][2], self._urgent[0][1]):
            heapq.heappop(self._urgent)
        while self._oldest and not self._is_current(self._oldest[0][1], self._oldest[0][0]):
            heapq.heappop(self._oldest)

    def _is_current(self, key: Key, order: int) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.order == order and entry.due is None

    def _make_ready(self, key: Key, entry: _Entry, since: float) -> None:
        """Put the key at the end of its class."""
        entry.due = None
        entry.since = since
        entry.order = next(self._orders)
        self.depth[entry.priority] += 1
        if key not in self.processing:
            self._offer(key, entry)

    def _offer(self, key: Key, entry: _Entry) -> None:
        heapq.heappush(self._urgent, (-entry.priority, entry.order, key))
        heapq.heappush(self._oldest, (entry.order, key))
        self._wake_one()

    def _leave_class(self, entry: _Entry) -> None:
        self.depth[entry.priority] -= 1
        if not self.depth[entry.priority]:
            del self.depth[entry.priority]

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _arm_timer(self) -> None:
        """One timer, for the earliest delayed key only."""
        while self._delayed and not self._is_waiting(*self._delayed[0]):
            heapq.heappop(self._delayed)
        due = self._delayed[0][0] if self._delayed else None
        if due == self._timer_due:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_due = due
        if due is not None:
            self._timer = self._clock.call_later(due - self._clock.monotonic(), self._release_due)

    def _is_waiting(self, due: float, order: int, key: Key) -> bool:
        entry = self._entries.get(key)
        return entry is not None and entry.order == order and entry.due == due

    def _release_due(self) -> None:
        self._timer = self._timer_due = None
        now = self._clock.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            due, order, key = heapq.heappop(self._delayed)
            if self._is_waiting(due, order, key):
                self._make_ready(key, self._entries[key], now)
        self._arm_timer()
