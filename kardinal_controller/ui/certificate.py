"""The certificate of the page's server, which is read again when its files change.

A Secret that is mounted, or a client of ACME, replaces the files while the program runs. Files that cannot be used are
reported, and what they had before stays. Each change makes a new context: one that is changed in place would go on to
believe authorities of client certificates that were removed, and to resume TLS sessions that these have opened.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from kardinal.clock import Clock
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.logging import get_logger
from kardinal_controller.ui.access.proxy import require_client_certificate

__all__ = ["CertificateFiles", "ServerCertificate"]

LOOKED_AT = 30.0
"""The time in seconds between two looks at the files."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Files with a certificate chain and its key in PEM, and with the authorities of client certificates, if asked."""

    certificate: Path
    key: Path
    client_authorities: Path | None = None


class ServerCertificate:
    """The TLS context of a server. `renewed` is awaited with each later context."""

    def __init__(
        self, files: CertificateFiles, *, clock: Clock, renewed: Callable[[ssl.SSLContext], Awaitable[None]]
    ) -> None:
        self._files = files
        self._clock = clock
        self._renewed = renewed
        self._context: ssl.SSLContext | None = None
        self._stamps: tuple[object, ...] = ()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> ssl.SSLContext:
        """Return the context with the present certificate. Raises `RuntimeFailure` for files that cannot be used."""
        try:
            self._stamps = await asyncio.to_thread(self._look)
            self._context = await asyncio.to_thread(self._load)
        except OSError as error:
            raise RuntimeFailure(
                f"the page cannot be served over TLS: {error}. --ui-tls-cert-file and --ui-tls-key-file name a "
                "certificate chain and its key in PEM, --ui-proxy-client-ca the authorities of the proxy"
            ) from None
        self._task = asyncio.create_task(self._follow(), name="certificate of the page")
        return self._context

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def protects(self, request: web.Request) -> bool:
        """Return whether the connection of a request was opened under the present context."""
        tls = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        return tls is not None and tls.context is self._context

    async def _follow(self) -> None:
        while True:
            await self._clock.sleep(LOOKED_AT)
            try:
                stamps = await asyncio.to_thread(self._look)
                if stamps != self._stamps:
                    await self._renew(await asyncio.to_thread(self._load))
                    self._stamps = stamps
                    _log.info("the page has a new certificate")
            except OSError as error:
                # One of two files that are replaced one after the other does not fit the other one for a moment.
                _log.warning("the new certificate of the page cannot be used; the old one stays", error=str(error))

    async def _renew(self, context: ssl.SSLContext) -> None:
        earlier = self._context
        self._context = context
        try:
            await self._renewed(context)
        except OSError:
            # The server has no descriptor for it, and goes on with the context of before until the next look.
            self._context = earlier
            raise

    def _look(self) -> tuple[object, ...]:
        files = (self._files.certificate, self._files.key, self._files.client_authorities)
        found = (path.stat() for path in files if path is not None)
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)

    def _load(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._files.certificate, self._files.key)
        if self._files.client_authorities is not None:
            require_client_certificate(context, self._files.client_authorities)
        return context
