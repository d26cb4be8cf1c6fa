"""The work queue: each key at most once, never two workers for one key, namespaces in turn, urgent keys first.

One entry per key contains everything known about its next run. Adding a key again merges the entries: the higher
priority and the earlier time win, so an event replaces a pending delay. A key may be added while it is being worked on.
It is then ready, but is handed out only when its worker is done, so that no event during the run is missed.

Within one priority the namespaces take turns: a key waits for at most one key of each other namespace, however many
keys those have. Turns are not enough if runs take long, so the last quarter of the workers is kept for namespaces that
have no worker: slow runs cannot occupy all workers. In addition, all runs share one thread and one API server, so while
other namespaces have runs, too, a namespace has at most a quarter of the workers. This limits the number of runs that
the run of another namespace has to wait for.

Every tenth time, the key that has waited longest in its namespace is handed out instead of the most urgent one, because
otherwise a steady stream of events would starve the initial list forever.

The heap of delays is never searched: outdated entries are dropped when they come to the top, or all at once when most
entries are outdated.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from kardinal.clock import Clock, Timer
from kardinal.objects import Key
from kardinal.runtime.rotation import Rotation

__all__ = ["INITIAL_PRIORITY", "PriorityQueue", "WorkItem"]

INITIAL_PRIORITY = -100
AGEING = 10
RESERVE = 4
"""The divisor of the workers that are kept free for namespaces without a worker: a quarter of all."""
SHARE = 4
"""The divisor of the workers that one namespace gets while others have runs: at most a quarter of all."""
_NEIGHBOUR_SECONDS = 1.0
"""The time in seconds after a hand-out for which its namespace counts as having runs."""

_FEW_DELAYS = 64


class WorkItem(NamedTuple):
    """A key handed out to a worker, with its priority and the seconds for which it was ready."""

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
    """The keys that are waiting for a run."""

    def __init__(self, *, clock: Clock, workers: int | None = None) -> None:
        """Create a queue. `workers` is the number of workers; without it, none is kept for other namespaces."""
        self.added = 0
        self.processing: dict[Key, float] = {}
        self.depth: Counter[int] = Counter()
        self._clock = clock
        self._entries: dict[Key, _Entry] = {}
        self._workers = workers
        self._busy: Counter[str] = Counter()
        self._latest: tuple[str, float] | None = None
        self._latest_other: tuple[str, float] | None = None
        self._share_timer: Timer | None = None
        self._urgent: dict[int, Rotation[Key]] = {}
        self._oldest: Rotation[Key] = Rotation()
        self._delayed: list[tuple[float, int, Key]] = []
        self._orders: Iterator[int] = count()
        self._hand_outs = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: Timer | None = None
        self._timer_due: float | None = None
        self._closed = False

    def __len__(self) -> int:
        """Return the number of ready keys; delayed ones do not count."""
        return self.depth.total()

    @property
    def delayed(self) -> int:
        return len(self._entries) - len(self)

    def add(self, key: Key, *, priority: int = 0, after: float = 0.0) -> None:
        """Request a run of `key`, now or `after` seconds from now."""
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
                self._leave_class(key, entry)
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
        """Return the next key, or None if the queue is shut down. The caller must call `done` with the key."""
        while not self._closed:
            item = self._take()
            if item is not None:
                if self:
                    # The end of this worker's last run may have made several keys available.
                    self._wake_one()
                return item
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                # Woken and cancelled at the same time: the key still needs a worker.
                if getter.done() and not getter.cancelled():
                    self._wake_one()
                raise
            finally:
                if getter in self._getters:
                    self._getters.remove(getter)
        return None

    def done(self, key: Key) -> None:
        """Mark the run of `key` as finished. If `key` was added during the run, it becomes available again."""
        del self.processing[key]
        self._busy -= Counter([key.namespace])
        entry = self._entries.get(key)
        if entry is not None and entry.due is None:
            self._offer(key, entry)

    def shut_down(self) -> None:
        """Hand out no more keys, and wake every waiting worker."""
        self._closed = True
        self._entries.clear()
        self._urgent.clear()
        self._oldest.clear()
        self.depth.clear()
        self._arm_timer()
        if self._share_timer is not None:
            self._share_timer.cancel()
            self._share_timer = None
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _take(self) -> WorkItem | None:
        longest_waiting = (self._hand_outs + 1) % AGEING == 0
        key = self._oldest.first(self._admits) if longest_waiting else self._most_urgent()
        if key is None:
            return None
        self._hand_outs += 1
        entry = self._entries.pop(key)
        self._leave_class(key, entry)
        if longest_waiting:
            self._oldest.end_turn(key.namespace)
        elif entry.priority in self._urgent:
            self._urgent[entry.priority].end_turn(key.namespace)
        now = self._clock.monotonic()
        self.processing[key] = now
        self._busy[key.namespace] += 1
        if self._latest is not None and self._latest[0] != key.namespace:
            self._latest_other = self._latest
        self._latest = key.namespace, now
        return WorkItem(key, entry.priority, now - entry.since)

    def _most_urgent(self) -> Key | None:
        found = (self._urgent[priority].first(self._admits) for priority in sorted(self._urgent, reverse=True))
        return next((key for key in found if key is not None), None)

    def _admits(self, namespace: str) -> bool:
        """Return whether a namespace may have one more worker."""
        if self._workers is None or not self._busy[namespace]:
            return True
        if self._is_beside_others(namespace) and self._busy[namespace] >= max(1, self._workers // SHARE):
            if self._share_timer is None:
                self._share_timer = self._clock.call_later(_NEIGHBOUR_SECONDS, self._look_again)
            return False
        return self._workers - len(self.processing) > self._workers // RESERVE

    def _look_again(self) -> None:
        """Wake a worker that found no key, because the other namespaces may no longer have runs."""
        self._share_timer = None
        self._wake_one()

    def _is_beside_others(self, namespace: str) -> bool:
        """Return whether another namespace has had a run within the last moment."""
        latest = self._latest_other if self._latest is not None and self._latest[0] == namespace else self._latest
        return latest is not None and self._clock.monotonic() - latest[1] < _NEIGHBOUR_SECONDS

    def _make_ready(self, key: Key, entry: _Entry, since: float) -> None:
        """Put the key at the end of the keys with its priority."""
        entry.due = None
        entry.since = since
        entry.order = next(self._orders)
        self.depth[entry.priority] += 1
        if key not in self.processing:
            self._offer(key, entry)

    def _offer(self, key: Key, entry: _Entry) -> None:
        self._urgent.setdefault(entry.priority, Rotation()).put(key)
        self._oldest.put(key)
        self._wake_one()

    def _leave_class(self, key: Key, entry: _Entry) -> None:
        self.depth[entry.priority] -= 1
        if not self.depth[entry.priority]:
            del self.depth[entry.priority]
        self._oldest.remove(key)
        line = self._urgent.get(entry.priority)
        if line is not None:
            line.remove(key)
            if not line:
                del self._urgent[entry.priority]

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _arm_timer(self) -> None:
        """Set the only timer to the earliest delayed key."""
        if len(self._delayed) > 2 * self.delayed + _FEW_DELAYS:
            # An event replaces a delay, whose heap entry would otherwise stay until its time.
            self._delayed = [position for position in self._delayed if self._is_waiting(*position)]
            heapq.heapify(self._delayed)
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
