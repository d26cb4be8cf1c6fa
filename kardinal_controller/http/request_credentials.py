"""The headers of a request by which CI posts a Bundle: token, signature, time and idempotency key (pure).

    Authorization: Bearer <token>
    X-Kardinal-Signature-256: sha256=<hex HMAC-SHA256>
    X-Kardinal-Timestamp: 1764198000
    Idempotency-Key: build-4711

A stranger chooses the bytes of headers. They are compared as bytes, and only digits are converted to a number.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from kardinal.promotion.api.signature import IDEMPOTENCY_KEY, SIGNATURE, TIMESTAMP, signed_text

__all__ = ["RequestCredentials"]

TOLERANCE = 300.0
"""The accepted difference in seconds between the time of the signature and the controller's clock."""

_DIGITS = re.compile(rb"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class RequestCredentials:
    """The credentials of one request.

    `timestamp` is None in the form without a time, in which the key is not signed.
    """

    token: bytes
    signature: bytes
    timestamp: bytes | None
    key: bytes

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> RequestCredentials | None:
        """Return the delivery; None if a credential is missing or malformed."""
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        algorithm, _, signature = headers.get(SIGNATURE, "").partition("=")
        token = token.strip()
        signature = signature.strip()
        if scheme.lower() != "bearer" or not token or algorithm.lower() != "sha256" or not signature:
            return None
        timestamp = headers.get(TIMESTAMP)
        return cls(
            token=_raw(token),
            signature=_raw(signature).lower(),
            timestamp=_raw(timestamp.strip()) if timestamp is not None else None,
            key=_raw(headers.get(IDEMPOTENCY_KEY, "")),
        )

    def is_signed_with(self, hmac_key: bytes, body: bytes) -> bool:
        """Return whether the signature is valid for these headers and `body`."""
        text = body if self.timestamp is None else signed_text(body, timestamp=self.timestamp, key=self.key)
        return hmac.compare_digest(hmac.digest(hmac_key, text, hashlib.sha256).hex().encode(), self.signature)

    def signed_at(self) -> int | None:
        """Return the time of the signature in seconds since 1970; None without one, or if it is not a number."""
        if self.timestamp is None or not _DIGITS.fullmatch(self.timestamp):
            return None
        return int(self.timestamp)

    def is_current(self, now: datetime) -> bool:
        """Return whether the signature was made within `TOLERANCE` of `now`."""
        signed_at = self.signed_at()
        return signed_at is not None and abs(now.timestamp() - signed_at) <= TOLERANCE

    @property
    def identity(self) -> str:
        """The text that distinguishes this delivery from others of its sender: its key, or without one its signature.

        A key that is not signed is ignored, because a recorded request could be repeated with another key.
        """
        kind, text = (b"key", self.key) if self.key and self.timestamp is not None else (b"signature", self.signature)
        return (kind + b" " + text).hex()


def _raw(text: str) -> bytes:
    """Return a header as the bytes that were sent, undoing the decoding of the server."""
    return text.encode("utf-8", "surrogateescape")
