"""Read the bodies of requests within `BODY_LIMIT` and `BODY_DEADLINE`, with a limit on the bytes of all large bodies.

A large body counts by the bytes that have arrived, so a body that is announced but not sent delays no other. If the
limit of its owner or of all owners is reached, a body waits, unread, for the bodies before it. The oldest body may go
on beyond the limit, so that there is always progress; but it is refused if others wait and it has taken longer than the
patience of its owner. For strangers that is no time at all: a client that sends continuously finishes long before a
client that stalls.

Few large bodies are processed at the same time, because decoding a body takes many times its size in memory.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import ParamSpec, TypeVar

from aiohttp import web

from kardinal_controller.http.body import LARGE
from kardinal_controller.http.problem import ProblemError

__all__ = ["BODY_LIMIT", "STRANGERS", "Bodies", "Body"]

BODY_LIMIT = 1024 * 1024
"""The maximum size of a request body in bytes; a larger one is answered 413."""
BODY_DEADLINE = 30.0
"""The time in seconds in which a client must send its body."""
LARGE_AT_ONCE = 4 * BODY_LIMIT
"""The most bytes of large bodies that one owner, a namespace or all strangers together, holds at the same time."""
LARGE_IN_ALL = 16 * BODY_LIMIT
"""The most bytes of large bodies that all owners together hold at the same time."""
WORKED_ON = 2
"""The most large bodies that are processed at the same time."""
BODY_WITHIN = 2.0
"""The time in seconds that an authenticated client has for its body while others wait for room."""
STRANGERS = ""
"""The owner of bodies from clients whose token is not checked yet."""
_CHUNK = 32 * 1024
"""The size in bytes of one read from a body; each connection holds at most one such chunk while it waits for room."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class _Arriving:
    owner: str
    deadline: asyncio.Timeout
    began: float
    size: int = 0
    complete: bool = False
    displaced: bool = False

    @property
    def patience(self) -> float:
        return 0.0 if self.owner == STRANGERS else BODY_WITHIN


@dataclass(frozen=True, slots=True)
class Body:
    """A body that has arrived; its bytes count for the limits until the block of `Bodies.body` ends."""

    content: bytes
    turns: asyncio.Semaphore

    async def work(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `work`, which runs on a thread and takes a turn if the body is large."""
        if len(self.content) <= LARGE:
            return work(*args, **kwargs)
        async with self.turns:
            return await asyncio.to_thread(work, *args, **kwargs)


class Bodies:
    """Read the bodies of the requests to one server."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()
        self._arriving: dict[_Arriving, None] = {}
        self._waiting: dict[asyncio.Future[None], None] = {}
        self._turns = asyncio.Semaphore(WORKED_ON)

    @asynccontextmanager
    async def body(self, http: web.Request, *, owner: str) -> AsyncIterator[Body]:
        """Read the body and keep it counted during the block. Raises `ProblemError` 400, 408, 413, 415, 503.

        A body whose Content-Length is small is not counted.
        """
        if http.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed")
        length = http.content_length
        if (length or 0) > BODY_LIMIT:
            raise _too_large()
        arriving = _Arriving(owner, asyncio.timeout(BODY_DEADLINE), asyncio.get_running_loop().time())
        try:
            yield Body(await self._read(http, arriving, counted=length is None or length > LARGE), self._turns)
        finally:
            self._release(arriving)

    async def _read(self, http: web.Request, arriving: _Arriving, *, counted: bool) -> bytes:
        content = bytearray()
        try:
            async with arriving.deadline:
                async for chunk in http.content.iter_chunked(_CHUNK):
                    if len(content) + len(chunk) > BODY_LIMIT:
                        raise _too_large()
                    if counted:
                        await self._take(arriving, len(chunk))
                    content += chunk
        except TimeoutError:
            raise _displaced() if arriving.displaced else _late() from None
        except (ConnectionError, web.RequestPayloadError):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "the connection ended before the body had arrived") from None
        arriving.complete = True
        return bytes(content)

    async def _take(self, arriving: _Arriving, size: int) -> None:
        """Count bytes that have arrived, as soon as there is room, or if the body is the oldest of those that wait.

        Refuses the oldest body if its time is over. Raises `ProblemError` 503 if that is this body.
        """
        loop = asyncio.get_running_loop()
        self._arriving.setdefault(arriving)
        while (crowded := self._crowded(arriving, size)) is not None and not arriving.displaced:
            others = [one for one in self._arriving if one.owner == crowded]
            oldest = next(one for one in others if not one.complete)
            ends = oldest.began + oldest.patience
            if oldest is not arriving and ends <= loop.time():
                self._displace(oldest)
            elif oldest is not arriving:
                await self._room(ends - loop.time())
            elif any(one.complete for one in others):
                await self._room(BODY_DEADLINE)
            else:
                break
        if arriving.displaced:
            raise _displaced()
        arriving.size += size
        self._held[arriving.owner] += size

    def _crowded(self, arriving: _Arriving, size: int) -> str | None:
        """Return the owner that must make room for `size` more bytes; None if there is enough room.

        That is the owner of this body if it has reached its own limit, and otherwise the owner with the most bytes.
        """
        if self._held[arriving.owner] + size > LARGE_AT_ONCE:
            return arriving.owner
        if self._held.total() + size <= LARGE_IN_ALL:
            return None
        return max((one.owner for one in self._arriving if not one.complete), key=lambda owner: self._held[owner])

    async def _room(self, seconds: float) -> None:
        """Wait until a body is released, or at most `seconds`."""
        freed = asyncio.get_running_loop().create_future()
        self._waiting[freed] = None
        try:
            await asyncio.wait([freed], timeout=seconds)
        finally:
            del self._waiting[freed]

    def _displace(self, oldest: _Arriving) -> None:
        self._release(oldest)
        oldest.displaced = True
        oldest.deadline.reschedule(asyncio.get_running_loop().time())

    def _release(self, arriving: _Arriving) -> None:
        if arriving not in self._arriving:
            return
        del self._arriving[arriving]
        self._held[arriving.owner] -= arriving.size
        if not self._held[arriving.owner]:
            del self._held[arriving.owner]
        for freed in self._waiting:
            if not freed.done():
                freed.set_result(None)


def _displaced() -> ProblemError:
    return ProblemError(
        HTTPStatus.SERVICE_UNAVAILABLE,
        f"too many bodies over {LARGE} bytes at once; try again",
        headers={"Retry-After": "5"},
    )


def _late() -> ProblemError:
    return ProblemError(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_DEADLINE:.0f} s")


def _too_large() -> ProblemError:
    return ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_LIMIT} bytes")
