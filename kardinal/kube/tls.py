"""The TLS context of a client of an API server."""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path

__all__ = ["client_context", "without_certificate"]


def client_context(
    *, authority: Path | None, verified: bool = True, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Return a context that trusts `authority`, or the machine's authorities without one, and presents `certificate`.

    Reads files, and takes about 20 ms. Raises OSError, for example ssl.SSLError, for a file that does not fit.
    """
    context = ssl.create_default_context(cafile=authority)
    # Clients in Go accept authorities without key identifiers, and many clusters have such an authority.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context


@lru_cache(maxsize=4)
def without_certificate(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return a context with the trust of another one that presents no certificate."""
    authorities = b"".join(context.get_ca_certs(binary_form=True))
    # Without listed authorities they are those of the machine, which are read when a server is verified.
    fresh = ssl.create_default_context(cadata=authorities or None)
    fresh.verify_flags = context.verify_flags
    fresh.check_hostname = context.check_hostname
    fresh.verify_mode = context.verify_mode
    return fresh
