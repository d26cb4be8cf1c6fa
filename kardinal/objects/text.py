"""Cutting text to the length that a field, a table or an Event allows."""

from __future__ import annotations

__all__ = ["cut"]


def cut(text: str, limit: int) -> str:
    """Return `text`, at most `limit` characters of it; an ellipsis says where something is missing."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
