"""The signature of a request to the webhook: the signed text and the algorithm.

The signature covers the time and the `Idempotency-Key` of a delivery besides its body. With the body alone, a recorded
request could be repeated forever, each time under another key.
"""

from __future__ import annotations

import hashlib
import hmac

__all__ = ["IDEMPOTENCY_KEY", "SIGNATURE", "TIMESTAMP", "signature", "signed_text"]

SIGNATURE = "X-Kardinal-Signature-256"
"""Header: `sha256=` and the signature in hexadecimal digits."""
TIMESTAMP = "X-Kardinal-Timestamp"
"""Header: the time of signing, in seconds since 1970."""
IDEMPOTENCY_KEY = "Idempotency-Key"
"""Header: the sender's name for the delivery; optional."""

_VERSION = b"v1"


def signed_text(body: bytes, *, timestamp: bytes, key: bytes) -> bytes:
    """Return the text to sign. `key` is the `Idempotency-Key`, or empty; `timestamp` and `key` contain no line feed."""
    return b"\n".join((_VERSION, timestamp, key, body))


def signature(hmac_key: bytes, text: bytes) -> str:
    """Return the HMAC-SHA256 of `text` in hexadecimal digits."""
    return hmac.digest(hmac_key, text, hashlib.sha256).hex()
