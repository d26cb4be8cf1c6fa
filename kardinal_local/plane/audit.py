"""Count the requests that were answered, by user, verb, resource and status code.

Requests are counted, not kept: tests and benches read how many writes a promotion cost and whether an idle hour was
idle. A test that needs the requests themselves subscribes. Watches are recorded when they begin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass

__all__ = ["WRITES", "LogSubscription", "LoggedRequest", "RequestLog"]

WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One answered request; `resource` is `plural.group`, and the path for what is no resource."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int


class LogSubscription:
    """Ends a subscription to the log."""

    def __init__(self, log: RequestLog, callback: Callable[[LoggedRequest], None]) -> None:
        self._log = log
        self._callback = callback

    def close(self) -> None:
        if self._callback in self._log.callbacks:
            self._log.callbacks.remove(self._callback)


class RequestLog:
    """Counts of all requests since the plane started."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, str, str, int]] = Counter()
        self.callbacks: list[Callable[[LoggedRequest], None]] = []

    def record(self, request: LoggedRequest) -> None:
        self.counts[(request.user, request.verb, request.resource, request.subresource, request.code)] += 1
        for callback in tuple(self.callbacks):
            callback(request)

    def subscribe(self, callback: Callable[[LoggedRequest], None]) -> LogSubscription:
        self.callbacks.append(callback)
        return LogSubscription(self, callback)

    def count(
        self, *, verbs: Collection[str] | None = None, resource: str | None = None, user: str | None = None
    ) -> int:
        """How many requests matched; None matches everything."""
        return sum(
            number
            for (name, verb, plural, _, _), number in self.counts.items()
            if (verbs is None or verb in verbs)
            and (resource is None or plural == resource)
            and (user is None or name == user)
        )

    @property
    def writes(self) -> int:
        """Requests that could have changed an object."""
        return self.count(verbs=WRITES)
