"""The work queue: each key at most once, never to two workers, namespaces in turn, urgent keys first.

One entry per key holds everything known about its next run. Adding a key again merges: the higher priority and the
earlier time win, so an event takes the place of a pending delay. A key that is being worked on may be added; it
becomes ready but is handed out only when its worker is done, so nothing that happened during the run is missed.

Of one priority the namespaces have turns: a key waits for one key of each other namespace at most, however many keys
those have. Turns are not enough where a run is long, so the last quarter of the workers is kept for namespaces that
have none: runs that wait for something slow cannot hold them all. And all runs share one thread and one API server, so
while other namespaces have runs, too, one has a quarter of the workers at most: what is under way for it at a moment is
what a run of another one waits behind.

Every tenth hand-out takes the key that has waited longest in its namespace instead of the most urgent, because a steady
stream of events would otherwise starve the initial list for ever.

The heap of delays is never searched: positions that are no longer true are dropped when they surface, or all together
when they are the greater part.
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
from kardinal.runtime.rotation import Rotation

__all__ = ["INITIAL_PRIORITY", "PriorityQueue", "WorkItem"]

INITIAL_PRIORITY = -100
AGEING = 10
RESERVE = 4
"""One worker of so many is for namespaces that have none."""
SHARE = 4
"""Of so many workers a namespace has one, beside others."""
_NEIGHBOUR_SECONDS = 1.0
"""How long after a run was handed out its namespace counts as one that others are beside."""

_FEW_DELAYS = 64


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

    def __init__(self, *, clock: Clock, workers: int | None = None) -> None:
        """`workers`: how many take keys; without it none are kept for namespaces that have none."""
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
        """Return the next key, or None when the queue is shut down. The caller must call `done` with it."""
        while not self._closed:
            item = self._take()
            if item is not None:
                if self:
                    # The end of this worker's last run may have made more than one key its turn.
                    self._wake_one()
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
        self._busy -= Counter([key.namespace])
        entry = self._entries.get(key)
        if entry is not None and entry.due is None:
            self._offer(key, entry)

    def shut_down(self) -> None:
        """Hand out nothing more; wake every worker that waits."""
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
        """Wake a worker that found nothing, because the others may have had their last run."""
        self._share_timer = None
        self._wake_one()

    def _is_beside_others(self, namespace: str) -> bool:
        """Return whether another namespace has had a run a moment ago."""
        latest = self._latest_other if self._latest is not None and self._latest[0] == namespace else self._latest
        return latest is not None and self._clock.monotonic() - latest[1] < _NEIGHBOUR_SECONDS

    def _make_ready(self, key: Key, entry: _Entry, since: float) -> None:
        """Put the key at the end of its class."""
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
        """One timer, for the earliest delayed key only."""
        if len(self._delayed) > 2 * self.delayed + _FEW_DELAYS:
            # An event takes the place of a delay, whose position would stay until its time.
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
