"""Cutting text to the length that a field, a table or an Event allows, and to the characters that can be shown."""

from __future__ import annotations

import unicodedata

__all__ = ["cut", "escaped", "printable"]

_NOT_SHOWN = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Categories of characters that control a terminal, the direction of text or the end of a line."""


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of `text`; a text that was cut ends in an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: str) -> str:
    """Return `text` without control and format characters."""
    return "".join(character for character in text if unicodedata.category(character) not in _NOT_SHOWN)


def escaped(text: str, *, kept: str = "") -> str:
    """Return `text` with the characters that are not visible written out, such as `\\x1b`, except those in `kept`."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character in kept else character.encode("unicode_escape").decode()
        for character in text
    )
