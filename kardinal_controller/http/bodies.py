"""Bodies of requests: read within `BODY_LIMIT` and `BODY_DEADLINE`, and of large ones a bounded number of bytes.

A large body counts by the bytes that have arrived, so one that is announced and not sent holds up no other. Where there
is no room for more, the one that has been arriving for the longest time gives way: a client that sends is through long
before a client that stalls.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from kardinal_controller.http.body import LARGE
from kardinal_controller.http.problem import ProblemError

__all__ = ["BODY_LIMIT", "LargeBodies"]

BODY_LIMIT = 1024 * 1024
"""Bytes of a request body that are read; more is answered 413."""
BODY_DEADLINE = 30.0
"""Seconds a client may take to send its body."""
LARGE_AT_ONCE = 4 * BODY_LIMIT
"""Bytes of large bodies that are held at once."""


@dataclass(eq=False, slots=True)
class _Arriving:
    deadline: asyncio.Timeout
    size: int = 0
    complete: bool = False
    displaced: bool = False


class LargeBodies:
    """The large bodies of clients that share a bound: of all strangers, or of the tokens of one namespace."""

    def __init__(self) -> None:
        self._held = 0
        self._arriving: dict[_Arriving, None] = {}

    @asynccontextmanager
    async def body(self, http: web.Request) -> AsyncIterator[bytes]:
        """Read the body and hold it for the block. Raises `ProblemError` 400, 408, 413, 415, 503.

        A body that says that it is small is not counted.
        """
        if http.headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed")
        length = http.content_length
        if (length or 0) > BODY_LIMIT:
            raise _too_large()
        arriving = _Arriving(asyncio.timeout(BODY_DEADLINE))
        try:
            yield await self._read(http, arriving, counted=length is None or length > LARGE)
        finally:
            self._release(arriving)

    async def _read(self, http: web.Request, arriving: _Arriving, *, counted: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        try:
            async with arriving.deadline:
                async for chunk in http.content.iter_any():
                    size += len(chunk)
                    if size > BODY_LIMIT:
                        raise _too_large()
                    if counted:
                        self._take(arriving, len(chunk))
                    chunks.append(chunk)
        except TimeoutError:
            raise _displaced() if arriving.displaced else _late() from None
        except (ConnectionError, web.RequestPayloadError):
            raise ProblemError(HTTPStatus.BAD_REQUEST, "the connection ended before the body had arrived") from None
        arriving.complete = True
        return b"".join(chunks)

    def _take(self, arriving: _Arriving, size: int) -> None:
        """Count what has arrived, and let the oldest give way. Raises `ProblemError` 503 where this is the oldest."""
        self._arriving.setdefault(arriving)
        arriving.size += size
        self._held += size
        while self._held > LARGE_AT_ONCE:
            oldest = next(one for one in self._arriving if not one.complete)
            self._release(oldest)
            if oldest is arriving:
                raise _displaced()
            oldest.displaced = True
            oldest.deadline.reschedule(asyncio.get_running_loop().time())

    def _release(self, arriving: _Arriving) -> None:
        if arriving in self._arriving:
            del self._arriving[arriving]
            self._held -= arriving.size


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
