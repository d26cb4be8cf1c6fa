"""Give clients the faults of a real cluster on purpose (`kardinal local up --chaos SEED`).

Reads of the plane are never stale, its watches never lag and its history is short of nothing, so a controller that
only ever ran here has not met a conflict, an expired watch or a lost answer. Under chaos it does: writes conflict,
requests are turned away for a while, lists and watches expire, connections break before and after the deed, events
come late and several at once.

Every decision follows from the seed, who asks for what, and how often that was asked before: not from the order in
which the requests of several clients happen to arrive. The administrator and the installer are spared; it is programs
that are tested.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from enum import Enum
from random import Random

import orjson

from kardinal_local.plane import statuses
from kardinal_local.plane.errors import LocalPlaneError, StatusError
from kardinal_local.plane.wire.exchange import Exchange
from kardinal_local.plane.wire.routes import Target

__all__ = ["Chaos", "Disconnected"]

LATENESS_SECONDS = 0.02
_BUSY = "the server has received too many requests and has asked us to try again later"
_STALE = "the object has been modified; please apply your changes to the latest version and try again"
_OLD = "too old resource version: chaos"


class Disconnected(LocalPlaneError):
    """The connection breaks here."""


class _Mishap(Enum):
    """What may happen to a request, and how often."""

    BUSY = 0.03
    CONFLICT = 0.08
    EXPIRED = 0.1
    LOST = 0.02
    ANSWER_LOST = 0.02


class Chaos:
    """The faults of one plane."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[str] = Counter()

    def before(self, exchange: Exchange, target: Target) -> bool:
        """Raise what befalls the request instead of an answer; whether its answer will get lost."""
        if exchange.user.is_master or exchange.verb == "watch":
            return False
        dice = self._dice(exchange, target)
        happens = {mishap for mishap in _Mishap if dice.random() < mishap.value}
        if _Mishap.BUSY in happens:
            raise StatusError(429, "TooManyRequests", _BUSY, retry_after=1)
        if _Mishap.CONFLICT in happens and exchange.verb in {"update", "patch"}:
            raise statuses.conflict(target.kind, target.name, _STALE)
        if _Mishap.EXPIRED in happens and exchange.verb == "list" and exchange.query.get("continue"):
            raise StatusError(410, "Expired", _OLD)
        if _Mishap.LOST in happens:
            raise Disconnected
        return _Mishap.ANSWER_LOST in happens

    async def disturbed(self, lines: AsyncIterator[bytes], exchange: Exchange, target: Target) -> AsyncIterator[bytes]:
        """The lines of a watch: late, and no longer than it pleases."""
        if exchange.user.is_master:
            async for line in lines:
                yield line
            return
        dice = self._dice(exchange, target)
        if exchange.query.get("resourceVersion", "0") != "0" and dice.random() < _Mishap.EXPIRED.value:
            refusal = orjson.dumps(statuses.failure(StatusError(410, "Expired", _OLD)))
            yield b'{"type":"ERROR","object":' + refusal + b"}\n"
            return
        async for line in lines:
            # The network's time: what is late on the clock of the plane would be early on that of its client.
            await asyncio.sleep(dice.random() * LATENESS_SECONDS)
            if dice.random() < _Mishap.LOST.value:
                raise Disconnected
            yield line

    def _dice(self, exchange: Exchange, target: Target) -> Random:
        what = (target.kind.qualified, target.namespace, target.name, target.subresource)
        asked = "/".join((exchange.user.name, exchange.verb, *what))
        self._asked[asked] += 1
        return Random(f"{self._seed}/{asked}/{self._asked[asked]}")  # noqa: S311 - chance, not secrets
