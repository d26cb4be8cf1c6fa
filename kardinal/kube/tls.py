"""The TLS context of a client of an API server."""

from __future__ import annotations

import ssl
from pathlib import Path

__all__ = ["client_context"]


def client_context(
    *, authority: Path | None, verified: bool = True, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """Trust `authority`, or those of the machine when it is None, and present `certificate` when one is given.

    Reads files and takes some 20 ms. Raises OSError, of which ssl.SSLError is one, for a file that does not fit.
    """
    context = ssl.create_default_context(cafile=authority)
    # Go clients accept authorities without key identifiers, and many clusters have one.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not verified:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    return context
