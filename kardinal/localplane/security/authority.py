"""The plane's own certificate authority (local-plane.md 2.2 item 2, 5.1).

kubectl drops bearer tokens on plain HTTP, so there is TLS as soon as there is authentication; clients trust the
authority through the CA in their kubeconfig. Both, the authority and what it issued for the server, are kept in the
plane's directory, because making them is a good part of a first start. What touches files belongs in a thread.

Certificates live in real time, never in a test's virtual time: the TLS library of the other side compares them with
the clock of the machine. The file of the server begins with the time until which it may be used, so that nobody has to
read a certificate to know.
"""

from __future__ import annotations

import ssl
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from kardinal.localplane.security.private import write_private
from kardinal.runtime.clock import SystemClock

__all__ = ["Authority"]

SERVER_LIFETIME = timedelta(days=825)
RENEWAL = timedelta(days=90)
"""So long before its end a certificate is replaced: no plane runs for longer."""
_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


class Authority:
    """A certificate authority, and a server on loopback whose certificate it issued.

    `certificate` is its own, as PEM; `context` the TLS of the server.
    """

    def __init__(self, authority: bytes, server: Path) -> None:
        self.certificate = authority[authority.index(_CERTIFICATE) :]
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.set_alpn_protocols(["http/1.1"])
        self.context.load_cert_chain(server)

    @classmethod
    def create(cls) -> Authority:
        """One that is kept nowhere."""
        with tempfile.TemporaryDirectory() as directory:
            return cls.load_or_create(Path(directory))

    @classmethod
    def load_or_create(cls, directory: Path) -> Authority:
        """The authority kept in `directory`, made at the first call."""
        path, server = directory / "ca.pem", directory / "server.pem"
        now = SystemClock().now()
        if not path.exists():
            write_private(path, _new_authority(now))
            server.unlink(missing_ok=True)
        authority = path.read_bytes()
        if not server.exists() or now > _renewed_at(server):
            write_private(server, _new_server(authority, now))
        return cls(authority, server)


def _new_authority(now: datetime) -> bytes:
    # Most starts make no certificate, and do without the library that could.
    from kardinal.localplane.security.certificates import new_authority  # noqa: PLC0415

    return new_authority(now)


def _new_server(authority: bytes, now: datetime) -> bytes:
    # As above.
    from kardinal.localplane.security.certificates import new_server  # noqa: PLC0415

    expires = now + SERVER_LIFETIME
    return b"%s\n%s" % (expires.isoformat().encode(), new_server(authority, now=now, expires=expires))


def _renewed_at(server: Path) -> datetime:
    with server.open() as file:
        return datetime.fromisoformat(file.readline().strip()) - RENEWAL
