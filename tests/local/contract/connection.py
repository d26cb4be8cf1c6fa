"""From a kubeconfig to what an HTTP client needs: an address, a TLS context, a header.

Only the forms that the servers of these tests write are understood; a person's kubeconfig with plugins is not.
"""

from __future__ import annotations

import base64
import ssl
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

__all__ = ["Connection"]

_CA, _CRT, _KEY = "certificate-authority", "client-certificate", "client-key"


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
        authority = _authority(cluster)
        anonymous = _trusting(authority) if authority else _context(cluster, {})
        with_certificate = _context(cluster, user) if user.get(_CRT) or user.get(f"{_CRT}-data") else anonymous
        return cls(cluster["server"], with_certificate, anonymous, user.get("token", ""))


def _authority(cluster: dict[str, Any]) -> str:
    """The certificate of the authority; none when it is not the one to ask."""
    if cluster.get("insecure-skip-tls-verify"):
        return ""
    if (embedded := cluster.get(f"{_CA}-data")) is not None:
        return base64.b64decode(embedded).decode()
    return Path(cluster[_CA]).read_text() if _CA in cluster else ""


@lru_cache(maxsize=8)
def _trusting(authority: str) -> ssl.SSLContext:
    # The planes of a run have one authority, and reading it takes as long as some tests.
    return ssl.create_default_context(cadata=authority)


def _context(cluster: dict[str, Any], user: dict[str, Any]) -> ssl.SSLContext:
    with tempfile.TemporaryDirectory() as directory:
        files = {
            name: _file(entry, name, Path(directory)) for entry, name in ((cluster, _CA), (user, _CRT), (user, _KEY))
        }
        context = ssl.create_default_context(cafile=files[_CA])
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if (certificate := files[_CRT]) is not None:
            context.load_cert_chain(certificate, files[_KEY])
    return context


def _file(entry: dict[str, Any], name: str, directory: Path) -> str | None:
    """A file with what an entry names or embeds; the library reads certificates from nowhere else."""
    if (embedded := entry.get(f"{name}-data")) is None:
        return entry.get(name)
    path = directory / name
    path.write_bytes(base64.b64decode(embedded))
    return str(path)
