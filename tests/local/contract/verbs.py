"""What can be asked of an API server, and what it answers, whoever sends the request and however."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

__all__ = ["Answer", "Stream", "Verbs"]

MERGE = "application/merge-patch+json"
JSON = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Answer:
    """What the server answered."""

    status: int
    body: Any
    headers: Any = field(repr=False)

    @property
    def revision(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def message(self) -> str:
        return str(self.body["message"])

    @property
    def causes(self) -> list[tuple[str, str]]:
        return [(cause["reason"], cause["field"]) for cause in self.body["details"]["causes"]]


class Stream:
    """The events of one watch, one by one."""

    answer: aiohttp.ClientResponse

    async def next(self) -> tuple[str, Any]:
        """The type and object of the next event."""
        line = await self.answer.content.readline()
        assert line, "the watch ended"
        event = orjson.loads(line)
        self.heard(event)
        return event["type"], event["object"]

    async def names(self, number: int) -> list[tuple[str, str]]:
        """Types and names of the next events."""
        events = [await self.next() for _ in range(number)]
        return [(kind, found["metadata"]["name"]) for kind, found in events]

    async def ended(self) -> bool:
        """Whether the server ended the watch without another event."""
        return await self.answer.content.readline() == b""

    def heard(self, event: dict[str, Any]) -> None:
        """Told of every event that is taken."""


class Verbs(ABC):
    """Requests by the name of what they do; how one is sent is the sender's."""

    @abstractmethod
    async def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send one request; what is no option of the sender is a parameter of the query."""

    async def get(self, path: str, **query: Any) -> Answer:
        return await self("GET", path, **query)

    async def post(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("POST", path, body, **query)

    async def put(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PUT", path, body, **query)

    async def merge(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PATCH", path, body, content_type=MERGE, **query)

    async def json(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PATCH", path, body, content_type=JSON, **query)

    async def strategic(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PATCH", path, body, content_type=STRATEGIC, **query)

    async def apply(self, path: str, body: Any, **query: Any) -> Answer:
        return await self("PATCH", path, body, content_type=APPLY, **{"fieldManager": "tester", **query})

    async def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        return await self("DELETE", path, body, **query)
