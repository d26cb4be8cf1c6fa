"""The HTTP sessions of a program, one for each set of certificate authorities, and their shared state.

Budgets and cached answers belong to a host and a credential, however many repositories use them; the memory for answers
belongs to a namespace. At most `MAX_SESSIONS` sessions are open, and one namespace uses at most `SESSIONS_SHARE` of
them, so that the authorities in its Secrets do not close the sessions of others.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from kardinal.bounded import Holding
from kardinal.bounded.connections import BoundedConnector
from kardinal.clock import Clock
from kardinal.git.addresses import HostAddresses, literal
from kardinal.scm.errors import RequestRefused
from kardinal.scm.http.budget import Rate, RequestBudget
from kardinal.scm.http.cache import AnswerCache
from kardinal.scm.http.first_seen import FirstSeen
from kardinal.scm.http.minted import MintedTokens

__all__ = ["HostSessions", "QuotaObserver"]

MAX_SESSIONS = 64
SESSIONS_SHARE = 8
"""The most sessions that one namespace uses at once."""
MAX_NAMES = 4096
MAX_BUDGETS = 4096
MAX_CONNECTIONS = 64
CONNECTIONS_OF_HOST = 16
CONNECT_TIMEOUT = 10.0
REQUEST_DEADLINE = 30.0
READ_SHARE = 12 << 20
"""The most bytes of answers that are being read for one namespace."""
READ_TOTAL = 64 << 20
"""The most bytes of answers that are being read for all namespaces."""
DECODED_SHARE = 24 << 20
"""The most bytes of memory for decoded answers of one namespace."""
DECODED_TOTAL = 128 << 20
"""The most bytes of memory for decoded answers of all namespaces."""

QuotaObserver = Callable[[str, int], None]
"""Called as (host, remaining) when a host reports its remaining requests."""


class HostSessions:
    """Open sessions, and keep budgets and cached answers; must be closed at the end.

    `addresses`: the addresses that hosts may have. Defaults to those of Git hosts and this machine.
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
        self._sessions: dict[str, asyncio.Task[aiohttp.ClientSession]] = {}
        # The authorities that each namespace uses: both orders are those of the last use.
        self._users: OrderedDict[str, OrderedDict[str, None]] = OrderedDict()
        self._budgets: OrderedDict[tuple[str, str], RequestBudget] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def session(self, authority: str, namespace: str = "") -> aiohttp.ClientSession:
        """Return the session that trusts `authority` (PEM), or the authorities of the machine if it is empty.

        It counts for `namespace`. Beyond the share of a namespace, the session that it used longest ago is closed, if
        no other namespace uses it. Beyond the limit for all, the namespace that uses most loses one.
        """
        opening = self._sessions.get(authority)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = self._sessions[authority] = asyncio.create_task(self._open(authority))
        used = self._users.setdefault(namespace, OrderedDict())
        used[authority] = None
        used.move_to_end(authority)
        self._users.move_to_end(namespace)
        if len(used) > SESSIONS_SHARE:
            self._drop(namespace)
        while len(self._sessions) > MAX_SESSIONS:
            self._drop(max(self._users, key=lambda each: len(self._users[each])))
        # If one caller is cancelled, the others must still get the session.
        return await asyncio.shield(opening)

    def _drop(self, namespace: str) -> None:
        """Let a namespace no longer use the session that it used longest ago."""
        used = self._users[namespace]
        authority, _ = used.popitem(last=False)
        if not used:
            del self._users[namespace]
        if any(authority in others for others in self._users.values()):
            return
        closing = asyncio.create_task(_close(self._sessions.pop(authority)))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def budget(self, host: str, identity: str, rate: Rate) -> RequestBudget:
        """Return the budget of a credential at a host."""
        key = (host, identity)
        budget = self._budgets.get(key)
        if budget is None:
            budget = self._budgets[key] = RequestBudget(rate, clock=self.clock)
            while len(self._budgets) > MAX_BUDGETS:
                # Not closed, so that requests waiting in it still get their turn.
                self._budgets.popitem(last=False)
        self._budgets.move_to_end(key)
        return budget

    async def close(self) -> None:
        """Close all sessions, and stop all timers."""
        for budget in self._budgets.values():
            budget.close()
        self._budgets.clear()
        sessions = list(self._sessions.values())
        self._sessions = {}
        self._users.clear()
        await asyncio.gather(*(_close(opening) for opening in sessions), *self._closing)

    async def _open(self, authority: str) -> aiohttp.ClientSession:
        try:
            # On a thread, because reading and parsing certificates would block the event loop too long.
            context = await asyncio.to_thread(_context, authority)
        except (ssl.SSLError, ValueError):
            raise RequestRefused(
                "git.secretRef: ca.crt holds no certificate in PEM form", remedy="Correct it in the Secret"
            ) from None
        return aiohttp.ClientSession(
            connector=BoundedConnector(
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
    # Many self-made authorities have no key identifiers.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


class CheckedNames(AbstractResolver):
    """Resolve host names, and refuse a name if one of its addresses is not allowed for a Git host."""

    def __init__(self, rules: HostAddresses) -> None:
        self._rules = rules
        self._resolver = ThreadedResolver()
        self._quotable: OrderedDict[str, bool] = OrderedDict()

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        self._note(host, port, [each["host"] for each in found])
        return found

    async def close(self) -> None:
        """Do nothing, because the resolver belongs to all sessions."""

    def check(self, host: str, port: int) -> None:
        """Check a host that is given as an address, which is not resolved. Raises `AddressRefused`."""
        if address := literal(host):
            self._note(host, port, [address])

    def quotable(self, host: str, port: int) -> bool:
        """Return whether messages of a host may be quoted, by its last resolved addresses."""
        return self._quotable.get(_shown(host, port), False)

    def _note(self, host: str, port: int, addresses: list[str]) -> None:
        shown = _shown(host, port)
        self._quotable.pop(shown, None)
        self._quotable[shown] = self._rules.check(addresses, shown)
        while len(self._quotable) > MAX_NAMES:
            self._quotable.popitem(last=False)


def _shown(host: str, port: int) -> str:
    name = f"[{host}]" if ":" in host else host.lower()
    return name if port == 443 else f"{name}:{port}"
