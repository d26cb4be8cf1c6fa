"""Limit the time that a connection takes for a request, and answer what cannot be parsed as one.

aiohttp waits for the end of a header for as long as a client keeps sending, and a client that sends a byte now and then
holds a connection for ever. Here a header has the time that it has on a real server, counted from its first byte, or
from the beginning of the connection. What cannot be parsed is refused in the words of the real server, without a line
in the log and without repeating what was sent.

Trap: the parser stops at a method that it does not know, so that the caller is not known by then; the refusal of
the method comes before that of the caller.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod, HttpProcessingError

from kardinal_local.plane import statuses
from kardinal_local.plane.wire.answers import refusal

__all__ = ["Connections"]

HEADER_SECONDS = 32.0
_REQUEST_LINE = re.compile(r"b'[\w!#$%&*+.^`|~-]+ \S+ HTTP/1\.[01]'")


class Connections(web.Server):
    """A server whose connections have a deadline for every header."""

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Connection(web.RequestHandler):
    __slots__ = ("_deadline",)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._expect_header()

    def data_received(self, data: bytes) -> None:
        # While a request is being answered, what comes is the rest of its body.
        if self._waiter is not None and self._deadline is None:
            self._expect_header()
        super().data_received(data)
        if self._messages:
            self._header_arrived()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._header_arrived()
        super().connection_lost(exc)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, BadHttpMethod) and _REQUEST_LINE.search(exc.message):
            answer = refusal(statuses.method_not_allowed())
        else:
            answer = web.Response(text="400 Bad Request", status=400)
        answer.force_close()
        return answer

    def _expect_header(self) -> None:
        self._deadline = self._loop.call_later(HEADER_SECONDS, self._cut_off)

    def _header_arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_off(self) -> None:
        if self.transport is not None:
            self.transport.abort()
