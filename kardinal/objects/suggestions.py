"""The nearest known name, for messages about a name that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["nearest"]


def nearest(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known name that is most like `name`; None where none is alike (`cutoff` from 0 to 1)."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=cutoff)), None)
