"""A budget of requests for each host and credential.

A token bucket spreads the requests of one credential. Waiting requests are served by purpose: a merge before an
opening, an opening before a poll. If a host counts resources separately (`core` and `graphql` at GitHub), each resource
has its own quota, but a request of the host to wait applies to all of them. While the host asks to wait, or the quota
is nearly used up, requests fail at once with the time to retry, because a waiting promotion must not occupy a worker.
"""

from __future__ import annotations

import asyncio
import heapq
from dataclasses import dataclass, field
from enum import IntEnum

from kardinal.clock import Clock, Timer
from kardinal.scm.errors import RateLimited
from kardinal.scm.http.answers import Quota

__all__ = ["Priority", "Rate", "RequestBudget"]


class Priority(IntEnum):
    """The purpose of a request; the lowest number is served first."""

    MERGE = 0
    OPEN = 1
    POLL = 2


RESERVE = {Priority.MERGE: 0.0, Priority.OPEN: 0.02, Priority.POLL: 0.1}
"""The fraction of the host's quota that is reserved for more urgent requests."""


@dataclass(frozen=True, slots=True)
class Rate:
    """The requests per second, and the number of requests that may be sent at once after a pause."""

    per_second: float
    burst: int


@dataclass(order=True, slots=True)
class _Waiting:
    priority: Priority
    sequence: int
    turn: asyncio.Future[None] = field(compare=False)


class RequestBudget:
    """The requests that one credential may send to one host."""

    def __init__(self, rate: Rate, *, clock: Clock) -> None:
        self._rate = rate
        self._clock = clock
        self._tokens = float(rate.burst)
        self._counted_at: float | None = None
        self._blocked_until = 0.0
        self._quotas: dict[str, tuple[Quota, float]] = {}
        self._queue: list[_Waiting] = []
        self._sequence = 0
        self._timer: Timer | None = None

    def remaining(self, resource: str = "") -> int | None:
        """Return the remaining requests of a resource, as reported by the host; None if it does not count them."""
        quota, until = self._quotas.get(resource, (None, 0.0))
        return None if quota is None or self._clock.monotonic() >= until else quota.remaining

    async def take(self, priority: Priority, resource: str = "") -> None:
        """Wait for a turn; raises `RateLimited` while the host asks to wait, or the quota is nearly used up."""
        self._check(priority, resource)
        self._refill()
        if self._tokens >= 1 and not self._queue:
            self._tokens -= 1
            return
        waiting = _Waiting(priority, self._sequence, asyncio.get_running_loop().create_future())
        self._sequence += 1
        heapq.heappush(self._queue, waiting)
        self._serve()
        try:
            await waiting.turn
        except asyncio.CancelledError:
            if waiting.turn.done() and not waiting.turn.cancelled():
                self._tokens += 1  # the turn came, but was not used
            raise

    def block(self, seconds: float) -> None:
        """Send nothing for `seconds`, as the host asked; requests that wait for a turn fail with that time."""
        self._blocked_until = max(self._blocked_until, self._clock.monotonic() + seconds)
        waiting = self._queue
        self._queue = []
        for one in waiting:
            if not one.turn.done():
                one.turn.set_exception(_limited(seconds))

    def observe(self, quota: Quota, resource: str = "") -> None:
        """Note the remaining quota of a resource, as reported by the host."""
        self._quotas[resource] = (quota, self._clock.monotonic() + quota.reset)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, priority: Priority, resource: str) -> None:
        now = self._clock.monotonic()
        if now < self._blocked_until:
            raise _limited(self._blocked_until - now)
        quota, until = self._quotas.get(resource, (None, 0.0))
        if quota is not None and now < until and quota.remaining <= quota.limit * RESERVE[priority]:
            raise _limited(until - now)

    def _refill(self) -> None:
        now = self._clock.monotonic()
        if self._counted_at is not None:
            gained = (now - self._counted_at) * self._rate.per_second
            self._tokens = min(float(self._rate.burst), self._tokens + gained)
        self._counted_at = now

    def _serve(self) -> None:
        """Give turns to waiting requests, and set the timer for the next turn."""
        self.close()
        self._refill()
        while self._queue and self._tokens >= 1:
            waiting = heapq.heappop(self._queue)
            if not waiting.turn.done():
                self._tokens -= 1
                waiting.turn.set_result(None)
        if self._queue:
            self._timer = self._clock.call_later((1 - self._tokens) / self._rate.per_second, self._serve)


def _limited(seconds: float) -> RateLimited:
    error = RateLimited(f"the host asks to wait {max(seconds, 0.0):.0f} s before the next request")
    error.retry_after = max(seconds, 0.0)
    return error
