"""The request log of a real API server, read as the local plane's is.

The server writes a line per request before it ends its answer, so a client that has an answer finds its line.
Housekeeping has the credentials of the administrator too and is told apart by what it calls itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import orjson

from kardinal_local.plane.audit import WRITES, LoggedRequest, LogSubscription, RequestLog

__all__ = ["FollowedLog"]

_HEARTBEATS = {"leases", "nodes"}
_HOUSEKEEPING = ("kube-", "kwok", "settle")


class FollowedLog(RequestLog):
    """A request log that catches up with its file whenever it is asked."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._size = 0
        self._rest = b""
        self.changes = 0
        """The writes of everybody, housekeeping included."""
        super().__init__()

    def count(
        self, *, verbs: Collection[str] | None = None, resource: str | None = None, user: str | None = None
    ) -> int:
        self.catch_up()
        return super().count(verbs=verbs, resource=resource, user=user)

    @property
    def writes(self) -> int:
        # Not the inherited one: its module is one of the product's, where reading a file would be reported.
        return self.count(verbs=WRITES)

    def subscribe(self, callback: Callable[[LoggedRequest], None]) -> LogSubscription:
        self.catch_up()
        super().subscribe(callback)
        return _Following(self, callback)

    def begin(self) -> None:
        """Forget what was counted, and who subscribed."""
        self.catch_up()
        self.counts = Counter()
        self.callbacks.clear()

    def catch_up(self) -> None:
        """Record what was written since."""
        # A file that has not grown is asked for thousands of times, and a read is a call that blocks.
        if (size := os.fstat(self._file.fileno()).st_size) == self._size:
            return
        content = self._file.read()
        self._size = max(size, self._file.tell())
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            entry = orjson.loads(line)
            self.changes += (
                entry["verb"] in WRITES and (entry.get("objectRef") or {}).get("resource") not in _HEARTBEATS
            )
            if not entry.get("userAgent", "").startswith(_HOUSEKEEPING):
                self.record(_logged(entry))

    def close(self) -> None:
        self._file.close()


class _Following(LogSubscription):
    """Hears of what was written before its end, too."""

    def __init__(self, log: FollowedLog, callback: Callable[[LoggedRequest], None]) -> None:
        super().__init__(log, callback)
        self._catch_up = log.catch_up

    def close(self) -> None:
        self._catch_up()
        super().close()


def _logged(entry: dict[str, Any]) -> LoggedRequest:
    about = entry.get("objectRef") or {}
    resource = ".".join(filter(None, (about.get("resource"), about.get("apiGroup"))))
    return LoggedRequest(
        user=(entry.get("impersonatedUser") or entry["user"])["username"],
        verb=entry["verb"],
        resource=resource or entry["requestURI"].partition("?")[0],
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        # What a create is about has no name yet.
        name="" if entry["verb"] == "create" else about.get("name", ""),
        code=entry.get("responseStatus", {}).get("code", 0),
    )
