"""The marker by which a comment of kardinal's is found again, invisible where Markdown is shown."""

from __future__ import annotations

import re

from kardinal.steps.text_limits import BODY_LIMIT, size, within

__all__ = ["is_marked", "marked", "unmarked"]

_MARKER = re.compile(r"\s*<!-- kardinal:[a-z0-9-]{1,63} -->\s*\Z")


def marked(body: str, marker: str) -> str:
    """Return the text of a comment with its marker at the end, as long as every host takes it."""
    end = f"\n\n<!-- kardinal:{marker} -->"
    return within(body.rstrip(), BODY_LIMIT - size(end)) + end


def is_marked(text: str, marker: str) -> bool:
    """Return whether a comment ends with this marker; one that quotes it does not count."""
    return text.rstrip().endswith(f"\n<!-- kardinal:{marker} -->")


def unmarked(text: str) -> str:
    """Return the text of a comment as people read it."""
    return _MARKER.sub("", text)
