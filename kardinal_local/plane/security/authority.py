"""Create and load the plane's own certificate authority.

kubectl drops bearer tokens on plain HTTP, so there is TLS as soon as there is authentication; clients trust the
authority through the CA in their kubeconfig. Both, the authority and what it issued for the server, are kept in the
plane's directory, because making them is a good part of a first start. What touches files belongs in a thread.

Certificates live in real time, never in a test's virtual time: the TLS library of the other side compares them with
the clock of the machine. The file of the server begins with the time until which it may be used, so that no
certificate has to be parsed to know.
"""

from __future__ import annotations

import ssl
import subprocess
import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path

from kardinal_local.plane.clock import SystemClock
from kardinal_local.plane.errors import LocalPlaneError
from kardinal_local.plane.security.private import write_private

__all__ = ["Authority"]

SERVER_LIFETIME = timedelta(days=825)
RENEWAL = timedelta(days=90)
"""So long before its end a certificate is replaced: no plane runs for longer."""
DEADLINE = 60.0
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
        if not path.exists() or not server.exists() or now > _renewed_at(server):
            authority, issued = _make(
                path.read_bytes() if path.exists() else b"", now=now, expires=now + SERVER_LIFETIME
            )
            # In this order: a server without its authority is made anew, never one beside another's.
            write_private(server, issued)
            write_private(path, authority)
        return cls(path.read_bytes(), server)


def _make(authority: bytes, *, now: datetime, expires: datetime) -> tuple[bytes, bytes]:
    """The authority, a new one when it is empty, and what the file of the server holds."""
    program = Path(__file__).with_name("certificates.py")
    command = [sys.executable, "-P", str(program), now.isoformat(), expires.isoformat()]
    done = subprocess.run(command, input=authority, capture_output=True, timeout=DEADLINE, check=False)  # noqa: S603
    if done.returncode:
        raise LocalPlaneError(f"no certificate could be made: {done.stderr.decode(errors='replace').strip()}")
    authority, _, server = done.stdout.rpartition(b"\n\n")
    return authority + b"\n", b"%s\n%s" % (expires.isoformat().encode(), server)


def _renewed_at(server: Path) -> datetime:
    with server.open() as file:
        return datetime.fromisoformat(file.readline().strip()) - RENEWAL
