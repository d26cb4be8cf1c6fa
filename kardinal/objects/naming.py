"""Bounded names: the common form of the names and label values that kardinal generates.

A name of more than 63 characters is cut and ends in eight hex digits of a hash of the whole name, so that two long
names with the same beginning differ.
"""

from __future__ import annotations

import base64
import hashlib

__all__ = ["NAME_LIMIT", "bounded", "long_hash", "short_hash"]

NAME_LIMIT = 63
"""The most characters of a DNS label and of a label value."""


def short_hash(text: str) -> str:
    """Return eight hex digits that stand for `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def long_hash(text: str) -> str:
    """Return 128 bits of a hash of `text` as 26 letters and digits; no second text with the same hash can be found."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()[:16]).decode().rstrip("=").lower()


def bounded(name: str) -> str:
    """Return `name` if it fits into a label value, otherwise its beginning with a hash of the whole name."""
    if len(name) <= NAME_LIMIT:
        return name
    return f"{name[: NAME_LIMIT - 9].rstrip('-._')}-{short_hash(name)}"
