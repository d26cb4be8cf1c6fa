"""The marker by which a comment of kardinal's is found again, invisible where Markdown is shown."""

from __future__ import annotations

import re

__all__ = ["is_marked", "marked", "unmarked"]

_MARKER = re.compile(r"\s*<!-- kardinal:[a-z0-9-]{1,63} -->\s*\Z")


def marked(body: str, marker: str) -> str:
    """Return the text of a comment with its marker at the end."""
    return f"{body.rstrip()}\n\n<!-- kardinal:{marker} -->"


def is_marked(text: str, marker: str) -> bool:
    """Return whether a comment ends with this marker; one that quotes it does not count."""
    return text.rstrip().endswith(f"\n<!-- kardinal:{marker} -->")


def unmarked(text: str) -> str:
    """Return the text of a comment as people read it."""
    return _MARKER.sub("", text)
