"""Clients of the webhook, the probes and the metrics that cost a server most: each goes on until it is cancelled.

What a client needs rights for, it has: the token of CI, or the secret of a Git host.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import orjson

from kardinal.clock import SystemClock
from tests.support.webhook import HMAC_KEY, TOKEN, sign

__all__ = ["CLIENTS", "Attack"]

_PAUSE = 0.02
_AT_ONCE = 8


@dataclass(slots=True)
class Attack:
    """One attack. `listeners`: the URLs of the webhook, the probes and the metrics. `answers` counts what came."""

    listeners: tuple[str, ...]
    namespace: str
    random: random.Random
    answers: Counter[str] = field(default_factory=Counter)

    async def open(self, listener: int = 0) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        parts = urlsplit(self.listeners[listener])
        return await asyncio.open_connection(parts.hostname, parts.port)

    async def exchange(self, *pieces: bytes, pause: float = 0) -> None:
        """Send pieces on a new connection, and count the first line that comes back."""
        with suppress(OSError):
            reader, writer = await self.open()
            try:
                with suppress(OSError):
                    for piece in pieces:
                        writer.write(piece)
                        await writer.drain()
                        await asyncio.sleep(pause)
                with suppress(TimeoutError):
                    async with asyncio.timeout(20):
                        line = await reader.readline()
                        self.answers[line.decode("latin-1").strip().removeprefix("HTTP/1.1 ") or "closed"] += 1
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    async def again(self, one: Callable[[], Awaitable[None]]) -> None:
        """Do something again and again, some at once."""

        async def repeat() -> None:
            while True:
                await one()
                await asyncio.sleep(_PAUSE)

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(repeat())

    async def hold(self, sent: bytes, number: int) -> None:
        """Open so many connections on every listener, send the same on each, and go on to open those that close."""
        held: list[asyncio.StreamWriter] = []
        try:
            while True:
                for listener in range(len(self.listeners)):
                    with suppress(OSError):
                        _, writer = await self.open(listener)
                        held.append(writer)
                        writer.write(sent)
                while len(held) > number:
                    held.pop(0).close()
                await asyncio.sleep(0.002 if len(held) < number else 0.1)
        finally:
            for writer in held:
                writer.close()

    def head(self, *lines: str, path: str = "/api/v1/bundles") -> bytes:
        return "\r\n".join([f"POST {path} HTTP/1.1", "Host: kardinal", *lines, "", ""]).encode()

    def signed(self, body: bytes, *lines: str) -> bytes:
        """Return a request of CI."""
        headers = sign(body, clock=SystemClock(), token=TOKEN, key=HMAC_KEY)
        told = [f"{name}: {value}" for name, value in headers.items()]
        path = f"/api/v1/namespaces/{self.namespace}/bundles"
        return self.head(*told, f"Content-Length: {len(body)}", *lines, path=path) + body

    def delivered(self, body: bytes) -> bytes:
        """Return a delivery of a Git host."""
        signature = hmac.new(HMAC_KEY.encode(), body, hashlib.sha256).hexdigest()
        told = [f"X-Gitea-Signature: {signature}", "X-Gitea-Event: push", f"Content-Length: {len(body)}"]
        return self.head(*told, path=f"/webhooks/gitea/{self.namespace}/app") + body


Client = Callable[[Attack], Awaitable[None]]


def _holding(sent: bytes, number: int = 1010) -> Client:
    return lambda attack: attack.hold(sent, number)


def _sending(make: Callable[[Attack], list[bytes]], *, pause: float = 0) -> Client:
    async def client(attack: Attack) -> None:
        await attack.again(lambda: attack.exchange(*make(attack), pause=pause))

    return client


_LARGE = b"POST /api/v1/bundles HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 1000000\r\n\r\n"
_BODIES = {
    "nested": b"[" * 400_000 + b"]" * 400_000,
    "containers": b"[" + b",".join([b"[[[[[[]]]]]]"] * 70_000) + b"]",
    "many keys": b"{" + b",".join(b'"%d":1' % number for number in range(80_000)) + b"}",
    "numbers": b'{"number": ' + b"9" * 900_000 + b"}",
    "wide text": b'{"message": "' + b"x" * 900_000 + "\U0001f600".encode() + b'"}',
    "misspelt fields": orjson.dumps({f"pipelin{number}": 1 for number in range(50_000)}),
    "not UTF-8": b'{"message": "' + b"\xff" * 100_000 + b'"}',
}
_ZEROS = gzip.compress(bytes(256 << 20), 9)

CLIENTS: dict[str, Client] = {
    "1,010 silent sockets": _holding(b""),
    "1,010 halves of a head": _holding(b"POST /api/v1/bundles HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 8000),
    "1,010 idle connections": _holding(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
    "large bodies that stall": _holding(_LARGE + b"x" * 300_000, 200),
    "answers that are not read": _holding(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 200, 200),
    "drip of a body": _sending(lambda attack: [_LARGE, *([b"x"] * 30)], pause=1),
    "endless headers": _sending(lambda attack: [b"GET / HTTP/1.1\r\n", *[b"X: " + b"x" * 4000 + b"\r\n"] * 500]),
    "huge header": _sending(lambda attack: [b"GET / HTTP/1.1\r\nX: ", *[b"x" * 65536] * 100]),
    "beyond its length": _sending(lambda attack: [attack.head("Content-Length: 2"), b"x" * 500_000]),
    "chunks of garbage": _sending(
        lambda attack: [attack.head("Transfer-Encoding: chunked"), b"fffffffff\r\n", attack.random.randbytes(100_000)]
    ),
    "noise": _sending(lambda attack: [attack.random.randbytes(100_000)]),
    "gzip bomb of CI": _sending(lambda attack: [attack.signed(_ZEROS, "Content-Encoding: gzip")]),
    **{
        f"{name}, of CI": _sending(lambda attack, body=body: [attack.signed(body)])  # type: ignore[misc]
        for name, body in _BODIES.items()
    },
    **{
        f"{name}, of a Git host": _sending(lambda attack, body=body: [attack.delivered(body)])  # type: ignore[misc]
        for name, body in _BODIES.items()
    },
}
"""The behaviours of clients, by names for people."""
