"""The certificate of the page's server, which is read again when its files change.

A Secret that is mounted, or a client of ACME, replaces the files while the program runs. New connections get the new
certificate; a pair that cannot be used is reported, and the old one stays. Authorities of client certificates that are
added are believed as well; those that are removed are believed until the next start.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

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
    """The TLS context of a server."""

    def __init__(self, files: CertificateFiles, *, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._stamps: tuple[object, ...] = ()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> ssl.SSLContext:
        """Return the context with the present certificate. Raises `RuntimeFailure` for files that cannot be used."""
        try:
            self._stamps = await asyncio.to_thread(self._look)
            await asyncio.to_thread(self._load)
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

    async def _follow(self) -> None:
        while True:
            await self._clock.sleep(LOOKED_AT)
            try:
                stamps = await asyncio.to_thread(self._look)
                if stamps != self._stamps:
                    await asyncio.to_thread(self._load)
                    self._stamps = stamps
                    _log.info("the page has a new certificate")
            except OSError as error:
                # One of two files that are replaced one after the other does not fit the other one for a moment.
                _log.warning("the new certificate of the page cannot be used; the old one stays", error=str(error))

    def _look(self) -> tuple[object, ...]:
        files = (self._files.certificate, self._files.key, self._files.client_authorities)
        found = (path.stat() for path in files if path is not None)
        return tuple((each.st_mtime_ns, each.st_size, each.st_ino) for each in found)

    def _load(self) -> None:
        # A pair that does not fit must not be half in use, so it is tried in a context of its own.
        tried = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tried.load_cert_chain(self._files.certificate, self._files.key)
        if self._files.client_authorities is not None:
            require_client_certificate(self._context, self._files.client_authorities)
        self._context.load_cert_chain(self._files.certificate, self._files.key)
