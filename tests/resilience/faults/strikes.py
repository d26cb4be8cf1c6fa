"""Faults in the place of an answer: each strike takes one exchange with the API or with Git."""

from __future__ import annotations

import io
import json
import re
import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress

from tests.resilience.faults.fronts import Front
from tests.support.repository import GitRepository
from tests.support.smart_server import Exchange

__all__ = [
    "Day",
    "Strike",
    "answer",
    "cut",
    "die_after",
    "die_before",
    "drip",
    "lost",
    "meanwhile",
    "nothing",
    "reset",
    "stall",
]


class Day:
    """A day at a host on which a strike hits `times` requests that match a pattern, after some that it spares.

    `seen`: every request as `METHOD path?query`. While `dead`, no request is answered: the program that asks is gone.
    """

    def __init__(self, front: Front) -> None:
        self.host = front.site
        self.front = front
        self.seen: list[str] = []
        self.struck = 0
        self.dead = threading.Event()
        self._lock = threading.Lock()
        self._pattern: re.Pattern[str] | None = None
        self._strike: Strike | None = None
        self._times = self._spared = 0
        front.server.trouble = self._handle

    def strikes(self, pattern: str, strike: Strike, *, times: int = 1, spared: int = 0) -> None:
        """Let a strike hit from now on."""
        self._pattern = re.compile(pattern)
        self._strike = strike
        self._times = times
        self._spared = spared

    def perform(self, exchange: Exchange, path: str) -> None:
        """Let the host answer."""
        if not self.front.handle(exchange, path):
            exchange.serve()

    def _handle(self, exchange: Exchange, path: str) -> bool:
        line = f"{exchange.command} {exchange.path}"
        with self._lock:
            self.seen.append(line)
            hit = self._is_hit(line)
            self.struck += hit
        if self.dead.is_set():
            _hang_up(exchange)
        elif hit and self._strike is not None:
            self._strike(self, exchange, path)
        else:
            self.perform(exchange, path)
        return True

    def _is_hit(self, line: str) -> bool:
        if self._pattern is None or self.struck >= self._times or not self._pattern.search(line):
            return False
        self._spared -= 1
        return self._spared < 0


Strike = Callable[[Day, Exchange, str], None]


def answer(status: int, body: object = None, headers: Mapping[str, str] | None = None) -> Strike:
    """Answer with a status; the host does nothing. A text is sent as it is."""

    def strike(day: Day, exchange: Exchange, path: str) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body or {"message": "a bad day"}).encode()
        exchange.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            exchange.send_header(name, value)
        exchange.send_header("Content-Length", str(len(content)))
        exchange.end_headers()
        exchange.wfile.write(content)

    return strike


def reset(day: Day, exchange: Exchange, path: str) -> None:
    """End the connection; the host does nothing."""
    _hang_up(exchange)


def lost(day: Day, exchange: Exchange, path: str) -> None:
    """Do what was asked for, and end the connection without an answer."""
    _captured(day, exchange, path)
    _hang_up(exchange)


def cut(day: Day, exchange: Exchange, path: str) -> None:
    """Do what was asked for, and end the connection in the middle of the answer."""
    content = _captured(day, exchange, path)
    exchange.wfile.write(content[: len(content) - 8])
    _hang_up(exchange)


def nothing(day: Day, exchange: Exchange, path: str) -> None:
    """Answer that it is done, and do nothing."""
    restore = day.front.snapshot()
    content = _captured(day, exchange, path)
    restore()
    exchange.wfile.write(content)


def stall(day: Day, exchange: Exchange, path: str) -> None:
    """Say nothing for longer than a step has, and then do what was asked for."""
    threading.Event().wait(1.5)
    with suppress(OSError):
        day.perform(exchange, path)


def drip(day: Day, exchange: Exchange, path: str) -> None:
    """Answer a byte at a time, for longer than a step has, without an end."""
    with suppress(OSError):
        exchange.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(30):
            exchange.wfile.write(b" ")
            exchange.wfile.flush()
            threading.Event().wait(0.05)
    _hang_up(exchange)


def die_before(day: Day, exchange: Exchange, path: str) -> None:
    """Kill the program that asks before anything is done."""
    day.dead.set()
    _hang_up(exchange)


def die_after(day: Day, exchange: Exchange, path: str) -> None:
    """Kill the program that asks when it is done."""
    _captured(day, exchange, path)
    day.dead.set()
    _hang_up(exchange)


def meanwhile(act: Callable[[GitRepository], object]) -> Strike:
    """Let another person do something in the repository at this moment, and answer."""

    def strike(day: Day, exchange: Exchange, path: str) -> None:
        act(day.host.repository)
        day.perform(exchange, path)

    return strike


def _captured(day: Day, exchange: Exchange, path: str) -> bytes:
    """Let the host do what was asked for; return its answer instead of sending it."""
    stream = exchange.wfile
    exchange.wfile = io.BytesIO()
    try:
        day.perform(exchange, path)
        content = exchange.wfile.getvalue()
    finally:
        exchange.wfile = stream
    return content


def _hang_up(exchange: Exchange) -> None:
    exchange.close_connection = True
    with suppress(OSError):
        exchange.connection.shutdown(socket.SHUT_RDWR)
