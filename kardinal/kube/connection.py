"""The connection to an API server: its address, its trusted authorities and the credentials.

`ClusterAccess` is the result of loading the configuration once. Credentials expire, so a `Connection` can load it
again: when `lifetime` is over (service account tokens are rotated in their file, exec plugins have limits of their
own), and once after a 401. Any number of requests may notice an expired token at the same time; they share one reload.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from kardinal.kube.errors import ConfigError
from kardinal.kube.tls import without_certificate

__all__ = ["ClusterAccess", "Connection"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ClusterAccess:
    """The result of loading a configuration once. The TLS context is built once per load, because that takes 20 ms."""

    server: str
    namespace: str = "default"
    authorization: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    tls_server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    lifetime: float | None = None  # seconds until the configuration should be loaded again; None: only after a 401
    presents_certificate: bool = False

    def with_token(self, token: str) -> ClusterAccess:
        """Return the access of the owner of a bearer token to the same server.

        A client certificate of this access does not go with it: API servers would take the request for its owner's.
        Takes some 20 ms for the first token if there is one.
        """
        tls = self.tls
        if self.presents_certificate and tls is not None:
            tls = without_certificate(tls)
        return replace(self, authorization=f"Bearer {token}", tls=tls, lifetime=None, presents_certificate=False)


class Connection:
    """An API server with credentials that are renewed automatically."""

    def __init__(self, access: ClusterAccess, *, load: Callable[[], Awaitable[ClusterAccess]] | None = None) -> None:
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
        """The namespace of the context, for commands without a namespace."""
        return self._access.namespace

    async def access(self) -> ClusterAccess:
        """Return credentials that are not known to have expired.

        If credentials are due but cannot be loaded, for example because their file is being written, the old ones stay
        in use until a 401.
        """
        if self._is_due():
            async with self._loading:
                # Another request may have loaded them in the meantime.
                if self._is_due():
                    await self._load_or_keep()
        return self._access

    async def renew(self, stale: ClusterAccess) -> ClusterAccess:
        """Load the configuration again, unless another request has replaced `stale` in the meantime."""
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
