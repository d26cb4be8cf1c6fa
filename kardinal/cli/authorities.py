"""Importing an HTTP client without the certificate authorities of the machine.

aiohttp loads them twice when it is imported, which takes a fifth of the time of a command. A command talks to API
servers alone, and whom it trusts there is read with the kubeconfig, those of the machine included.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["no_authorities"]

_AUTHORITIES = "SSL_CERT_FILE"


@contextmanager
def no_authorities() -> Iterator[None]:
    """Tell OpenSSL that the machine trusts no authority, until the block ends."""
    before = os.environ.get(_AUTHORITIES)
    os.environ[_AUTHORITIES] = os.devnull
    try:
        yield
    finally:
        if before is None:
            del os.environ[_AUTHORITIES]
        else:
            os.environ[_AUTHORITIES] = before
