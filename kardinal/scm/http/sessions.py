"""The HTTP sessions of a program, one for each set of certificate authorities, and what they share.

Budgets and kept answers belong to a host and a credential, however many repositories use them; room for what is read
belongs to a namespace. At most `MAX_SESSIONS` sessions are open; the one used longest ago is closed first.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Self

import aiohttp

from kardinal.bounded import Holding
from kardinal.git.addresses import HostAddresses
from kardinal.runtime.clock import Clock
from kardinal.scm.errors import RequestRefused
from kardinal.scm.http.budget import Budget, Rate
from kardinal.scm.http.cache import AnswerCache
from kardinal.scm.http.first_seen import FirstSeen
from kardinal.scm.http.minted import MintedTokens
from kardinal.scm.http.names import CheckedNames

__all__ = ["HostSessions", "QuotaObserver"]

MAX_SESSIONS = 64
MAX_BUDGETS = 4096
MAX_CONNECTIONS = 64
CONNECTIONS_OF_HOST = 16
CONNECT_TIMEOUT = 10.0
REQUEST_DEADLINE = 30.0
READ_SHARE, READ_TOTAL = 12 << 20, 64 << 20
"""Bytes of answers that are read at once, for one namespace and for all."""
DECODED_SHARE, DECODED_TOTAL = 24 << 20, 128 << 20
"""Bytes of memory that decoded answers take at once."""

QuotaObserver = Callable[[str, int], None]
"""Called as (host, remaining) when a host says how many requests are left."""


class HostSessions:
    """Opens sessions, and keeps budgets and answers; close it in the end.

    `addresses`: those that hosts may have. Defaults to those of Git hosts and this machine.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        user_agent: str = "kardinal",
        on_quota: QuotaObserver | None = None,
        addresses: HostAddresses | None = None,
    ) -> None:
        self.clock = clock
        self.answers = AnswerCache()
        self.first_seen = FirstSeen(clock)
        self.tokens = MintedTokens(clock)
        self.reading = Holding(share=READ_SHARE, total=READ_TOTAL)
        self.holding = Holding(share=DECODED_SHARE, total=DECODED_TOTAL)
        self.on_quota = on_quota
        self.names = CheckedNames(addresses or HostAddresses(loopback=True))
        self._user_agent = user_agent
        self._sessions: OrderedDict[str, asyncio.Task[aiohttp.ClientSession]] = OrderedDict()
        self._budgets: OrderedDict[tuple[str, str], Budget] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def session(self, authority: str) -> aiohttp.ClientSession:
        """Return the session that trusts `authority` (PEM), or those of the machine when it is empty."""
        opening = self._sessions.get(authority)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._sessions[authority] = asyncio.create_task(self._open(authority))
            while len(self._sessions) > MAX_SESSIONS:
                _, oldest = self._sessions.popitem(last=False)
                closing = asyncio.create_task(_close(oldest))
                self._closing.add(closing)
                closing.add_done_callback(self._closing.discard)
        self._sessions.move_to_end(authority)
        # A caller that gives up must not take the session away from others.
        return await asyncio.shield(opening)

    def budget(self, host: str, identity: str, rate: Rate) -> Budget:
        """Return the budget of a credential at a host."""
        key = (host, identity)
        budget = self._budgets.get(key)
        if budget is None:
            budget = self._budgets[key] = Budget(rate, clock=self.clock)
            while len(self._budgets) > MAX_BUDGETS:
                # Not closed: requests that wait for their turn in it still get it.
                self._budgets.popitem(last=False)
        self._budgets.move_to_end(key)
        return budget

    async def close(self) -> None:
        """Close all sessions, and stop all timers."""
        for budget in self._budgets.values():
            budget.close()
        self._budgets.clear()
        sessions, self._sessions = list(self._sessions.values()), OrderedDict()
        await asyncio.gather(*(_close(opening) for opening in sessions), *self._closing)

    async def _open(self, authority: str) -> aiohttp.ClientSession:
        try:
            # Reads and parses certificates, which takes long enough to hold up everything else on the loop.
            context = await asyncio.to_thread(_context, authority)
        except (ssl.SSLError, ValueError):
            raise RequestRefused(
                "git.secretRef: ca.crt holds no certificate in PEM form", remedy="Correct it in the Secret"
            ) from None
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS,
                limit_per_host=CONNECTIONS_OF_HOST,
                ssl=context,
                resolver=self.names,
                use_dns_cache=False,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": self._user_agent, "Accept": "application/json", "Accept-Encoding": "identity"},
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=REQUEST_DEADLINE, sock_connect=CONNECT_TIMEOUT),
        )


async def _close(opening: asyncio.Task[aiohttp.ClientSession]) -> None:
    opening.cancel()
    await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()


def _context(authority: str) -> ssl.SSLContext:
    if not authority:
        return ssl.create_default_context()
    context = ssl.create_default_context(cadata=authority)
    # Many authorities that teams made themselves have no key identifiers.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
