"""From a kubeconfig to what an HTTP client needs: an address, a TLS context, a header.

Only the forms that the servers of these tests write are understood; a person's kubeconfig with plugins is not.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Connection"]


@dataclass(frozen=True)
class Connection:
    """How to reach one API server as its administrator, and how as nobody yet."""

    server: str
    tls: ssl.SSLContext
    anonymous_tls: ssl.SSLContext
    token: str

    @classmethod
    def load(cls, kubeconfig: Path) -> Connection:
        config = yaml.load(kubeconfig.read_bytes(), yaml.CSafeLoader)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        anonymous = _context(cluster)
        with_certificate = _with_certificate(_context(cluster), user) if "client-key-data" in user else anonymous
        return cls(cluster["server"], with_certificate, anonymous, user.get("token", ""))


def _context(cluster: dict[str, Any]) -> ssl.SSLContext:
    authority = cluster.get("certificate-authority-data")
    if authority is not None:
        return ssl.create_default_context(cadata=base64.b64decode(authority).decode())
    if not cluster.get("insecure-skip-tls-verify"):
        return ssl.create_default_context(cafile=cluster["certificate-authority"])
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _with_certificate(context: ssl.SSLContext, user: dict[str, Any]) -> ssl.SSLContext:
    with tempfile.NamedTemporaryFile() as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]))
        file.flush()
        context.load_cert_chain(file.name)
    return context
