"""What was asked and answered during one test, in the order of the asking.

The tape keeps what a client can notice: status, Content-Type, Warning, Retry-After, the whole body, and of a watch the
events that the test read. It is scrubbed as a whole at the end, because only the whole tells which names are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.local.contract.scrub import scrub, timestamps

__all__ = ["Exchange", "Tape"]

JsonObject = dict[str, Any]

_MEMBERS = ("request", "loose", "status", "headers", "body", "events", "ended")
_HEADERS = ("Content-Type", "Retry-After", "Warning")


@dataclass
class Exchange:
    """One request and as much of its answer as the test has seen."""

    request: str
    loose: bool = False
    answer: JsonObject = field(default_factory=dict)

    def answered(self, status: int, headers: Any) -> None:
        kept = {name: ", ".join(headers.getall(name)) for name in _HEADERS if name in headers}
        self.answer |= {"status": status, "headers": kept}

    def document(self) -> JsonObject:
        return {"request": self.request} | ({"loose": True} if self.loose else {}) | self.answer


class Tape:
    """The exchanges of one test."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._sent: set[str] = set()

    def start(self, request: str, *, body: bytes | None, loose: bool) -> Exchange:
        """Note a request before it is sent: the order of requests is the order of the tape."""
        if body:
            received = timestamps(orjson.dumps([exchange.answer for exchange in self.exchanges]).decode())
            self._sent |= timestamps(body.decode(errors="replace")) - received
        exchange = Exchange(request, loose)
        self.exchanges.append(exchange)
        return exchange

    def scrubbed(self, names: Mapping[str, str]) -> list[JsonObject]:
        """The exchanges with everything renamed that differs from run to run; `names` are those the run chose."""
        documents = [exchange.document() for exchange in self.exchanges]
        scrubbed = scrub(documents, names=names, constants=self._sent)
        return [{member: one[member] for member in _MEMBERS if member in one} for one in scrubbed]
