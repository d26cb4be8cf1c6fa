"""The connection to an API server: its address, its trust and the credentials.

`Access` is one answer to that question; credentials go stale, so a `Connection` can ask again: when the answer says
it expires (service account tokens are rotated in their file, exec plugins have a life of their own) and once after a
401. Any number of requests may notice a stale token at the same moment: they share one reload.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kardinal.kube.errors import ConfigError

__all__ = ["Access", "Connection"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """The result of one load of a configuration. The TLS context is built once per load, because it costs 20 ms."""

    server: str
    namespace: str = "default"
    authorization: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    lifetime: float | None = None  # seconds until it is worth loading again; None: only a 401 makes it so


class Connection:
    """An API server together with credentials that renew themselves."""

    def __init__(self, access: Access, *, load: Callable[[], Awaitable[Access]] | None = None) -> None:
        self._access = access
        self._load = load
        self._renew_at: float | None = None
        self._loading = asyncio.Lock()
        self._schedule()

    @property
    def server(self) -> str:
        """The base URL, without a trailing slash."""
        return self._access.server.rstrip("/")

    @property
    def namespace(self) -> str:
        """The namespace the user of this connection means when none is given."""
        return self._access.namespace

    async def access(self) -> Access:
        """Credentials that are not known to be stale.

        Those that are due and cannot be loaded, as a file that is being written, stay in use until a 401.
        """
        if self._is_due():
            async with self._loading:
                # Another request may have loaded them meanwhile.
                if self._is_due():
                    await self._load_or_keep()
        return self._access

    async def renew(self, stale: Access) -> Access:
        """Load again, unless someone else replaced `stale` meanwhile."""
        if self._load is None:
            return self._access
        async with self._loading:
            if self._access is stale:
                self._access = await self._load()
                self._schedule()
            return self._access

    def _is_due(self) -> bool:
        return self._renew_at is not None and asyncio.get_running_loop().time() >= self._renew_at

    async def _load_or_keep(self) -> None:
        if self._load is not None:
            try:
                self._access = await self._load()
            except ConfigError as error:
                _log.warning("credentials cannot be loaded again and stay in use: %s", error)
        self._schedule()

    def _schedule(self) -> None:
        lifetime = self._access.lifetime
        self._renew_at = None if lifetime is None else asyncio.get_running_loop().time() + lifetime
