"""Delete Events an hour after they were last written.

All live equally long, so the order in which they were written is the order in which they expire, and one timer, for
the oldest, is enough. Time is the injected clock's.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from kardinal_local.plane.clock import Clock, Timer
from kardinal_local.plane.errors import StorageFailed
from kardinal_local.plane.storage import Change, Entry, Store

__all__ = ["EVENT_LIFETIME", "Expiry"]

EVENT_LIFETIME = timedelta(hours=1)
OVERDUE_PAUSE = 1.0
_EVENTS = "events"


class Expiry:
    """Deletes the events of one store when their time has come."""

    def __init__(self, store: Store, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._deadlines: dict[tuple[str, str], float] = {}
        self._timer: Timer | None = None

    def load(self) -> None:
        """Take over the events of an earlier process, by the time that stands in them."""
        now, monotonic = self._clock.now(), self._clock.monotonic()
        ages = sorted(((now - _written(entry), entry) for entry in self._store.entries(_EVENTS)), key=_oldest_first)
        for age, entry in ages:
            left = max(EVENT_LIFETIME - age, timedelta(0))
            self._deadlines[(entry.namespace, entry.name)] = monotonic + left.total_seconds()
        self._expire()

    def observe(self, change: Change) -> None:
        if change.entry.resource != _EVENTS:
            return
        key = (change.entry.namespace, change.entry.name)
        self._deadlines.pop(key, None)
        if change.type != "DELETED":
            self._deadlines[key] = self._clock.monotonic() + EVENT_LIFETIME.total_seconds()
            self._arm()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if self._timer is None and self._deadlines:
            oldest = next(iter(self._deadlines.values()))
            left = oldest - self._clock.monotonic()
            # Overdue is what could not be deleted this time, and what is not known to be deleted yet.
            self._timer = self._clock.call_later(left if left > 0 else OVERDUE_PAUSE, self._expire)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for (namespace, name), deadline in list(self._deadlines.items()):
            if deadline > now:
                break
            entry = self._store.get(_EVENTS, namespace=namespace, name=name)
            if entry is not None:
                try:
                    self._store.delete(_EVENTS, entry.decode())
                except StorageFailed:
                    break
        self._arm()


def _written(entry: Entry) -> datetime:
    """The latest moment that an event speaks of."""
    document = entry.decode()
    moments = (
        document["metadata"]["creationTimestamp"],
        document.get("lastTimestamp"),
        document.get("eventTime"),
        (document.get("series") or {}).get("lastObservedTime"),
    )
    return max(datetime.fromisoformat(moment) for moment in moments if moment)


def _oldest_first(aged: tuple[timedelta, Entry]) -> timedelta:
    return -aged[0]
