"""Tokens with an expiry: cached until shortly before they expire, and minted once for all concurrent callers.

The owner of a token names it by everything that it depends on, including the key that signs the request for it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from kardinal.clock import Clock

__all__ = ["MintedToken", "MintedTokens"]

MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True, repr=False)
class MintedToken:
    """A token, the seconds for which it may be used, and its permissions in the host's words."""

    text: str
    lifetime: float
    permissions: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "MintedToken(***)"


class MintedTokens:
    """The tokens of a program; beyond `MAX_ENTRIES`, the least recently used are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[MintedToken, float]] = OrderedDict()
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}

    async def get(self, name: str, mint: Callable[[], Awaitable[MintedToken]]) -> MintedToken:
        """Return the token of `name`; mint it if there is none, or if it is about to expire."""
        lock, users = self._locks.get(name, (asyncio.Lock(), 0))
        self._locks[name] = (lock, users + 1)
        try:
            async with lock:
                kept = self.kept(name)
                if kept is None:
                    kept = await mint()
                    self._kept[name] = (kept, self._clock.monotonic() + kept.lifetime)
                    while len(self._kept) > MAX_ENTRIES:
                        self._kept.popitem(last=False)
                self._kept.move_to_end(name)
                return kept
        finally:
            lock, users = self._locks.pop(name)
            if users > 1:
                self._locks[name] = (lock, users - 1)

    def kept(self, name: str) -> MintedToken | None:
        """Return the token of `name` if it may still be used."""
        token, until = self._kept.get(name, (None, 0.0))
        return token if self._clock.monotonic() < until else None

    def drop(self, name: str, token: MintedToken) -> None:
        """Forget a token that the host refused, unless it was replaced already."""
        if self.kept(name) is token:
            del self._kept[name]
