"""Clients that write until their server dies, and know exactly what it promised them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp
import orjson

from tests.local.plane.wire import CONFIG_MAPS, Answer, Http, config_map

__all__ = ["Promises", "Writer", "broken", "follow"]

NAMES = 5
PADDING = "x" * 1000


@dataclass
class Promises:
    """What a server has acknowledged: the content of each object (None: there is none), and its highest revision."""

    content: dict[str, str | None] = field(default_factory=dict)
    doubtful: dict[str, str | None] = field(default_factory=dict)
    answers: int = 0
    revision: int = 0
    _answered: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def answer(self) -> None:
        """Count one more write that was acknowledged."""
        async with self._answered:
            self.answers += 1
            self._answered.notify_all()

    async def until(self, answers: int) -> None:
        """Wait until so many writes were acknowledged."""
        async with self._answered:
            await self._answered.wait_for(lambda: self.answers >= answers)

    def see(self, revision: str) -> None:
        self.revision = max(self.revision, int(revision))

    def check(self, listed: Answer) -> None:
        """Every write is whole or absent, what was acknowledged is there, the revision has not gone back."""
        assert int(listed.revision) >= self.revision
        stored = {item["metadata"]["name"]: item["data"] for item in listed.body["items"]}
        assert stored.keys() <= self.content.keys() | self.doubtful.keys()
        for name in self.content.keys() | self.doubtful.keys():
            data = stored.get(name)
            found = None if data is None else data["head"]
            assert data is None or data["tail"] == data["head"] + PADDING
            allowed = {self.content.get(name)} | ({self.doubtful[name]} if name in self.doubtful else set())
            assert found in allowed, f"{name} is {found!r}, which is none of {allowed}"
            self.content[name] = found
        self.doubtful.clear()


class Writer:
    """One client with objects of its own: creates, changes and deletes them, one request after the other."""

    def __init__(self, http: Http, promises: Promises, *, name: str) -> None:
        self._http = http
        self._promises = promises
        self._name = name

    async def write(self) -> None:
        """Write until the connection breaks."""
        for number in count():
            await self._write(f"{self._name}-{number % NAMES}", f"{self._name} {number}", delete=number % 3 == 2)

    async def _write(self, name: str, text: str, *, delete: bool) -> None:
        exists = self._promises.content.get(name) is not None
        wanted = None if delete and exists else text
        self._promises.doubtful[name] = wanted
        answer = await self._ask(name, wanted, exists=exists)
        assert answer.status in {200, 201}, answer.body
        self._promises.content[name] = wanted
        del self._promises.doubtful[name]
        if wanted is not None:
            self._promises.see(answer.revision)
        await self._promises.answer()

    async def _ask(self, name: str, wanted: str | None, *, exists: bool) -> Answer:
        path = f"{CONFIG_MAPS}/{name}"
        if wanted is None:
            return await self._http.delete(path)
        body: Any = config_map(name, head=wanted, tail=wanted + PADDING)
        return await (self._http.put(path, body) if exists else self._http.post(CONFIG_MAPS, body))


async def follow(http: Http, promises: Promises) -> None:
    """Watch until the connection breaks: a revision that was told is promised, too."""
    async with http.watch(CONFIG_MAPS) as watch:
        while line := await watch.answer.content.readline():
            promises.see(orjson.loads(line)["object"]["metadata"]["resourceVersion"])


async def broken(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Until each of them has lost its connection."""
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        assert outcome is None or isinstance(outcome, aiohttp.ClientError), outcome
