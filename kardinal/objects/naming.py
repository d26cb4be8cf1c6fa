"""Bounded names: what the names and label values that kardinal generates have in common.

A name that would pass 63 characters is cut and ends in eight hex digits of a hash of the whole, which keeps two long
names apart.
"""

from __future__ import annotations

import base64
import hashlib

__all__ = ["NAME_LIMIT", "bounded", "long_hash", "short_hash"]

NAME_LIMIT = 63
"""Characters of a DNS label and of a label value."""


def short_hash(text: str) -> str:
    """Return eight hex digits that stand for `text`."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def long_hash(text: str) -> str:
    """Return 26 letters and digits with 128 bits of a hash of `text`: no one finds a second text for them."""
    return base64.b32encode(hashlib.sha256(text.encode()).digest()[:16]).decode().rstrip("=").lower()


def bounded(name: str) -> str:
    """Return `name` where it fits into a label value, else cut and closed with its hash."""
    if len(name) <= NAME_LIMIT:
        return name
    return f"{name[: NAME_LIMIT - 9].rstrip('-._')}-{short_hash(name)}"
