"""The marker by which a comment of kardinal is recognised; it is invisible in rendered Markdown."""

from __future__ import annotations

import re

from kardinal.objects.text_limits import BODY_LIMIT, size, within

__all__ = ["is_marked", "marked", "unmarked"]

_MARKER = re.compile(r"(?<!\s)\s*+<!-- kardinal:[a-z0-9-]{1,63} -->\s*+\Z")


def marked(body: str, marker: str) -> str:
    """Return the text of a comment with its marker at the end, cut to the length that every host accepts."""
    end = f"\n\n<!-- kardinal:{marker} -->"
    return within(body.rstrip(), BODY_LIMIT - size(end)) + end


def is_marked(text: str, marker: str) -> bool:
    """Return whether a comment ends with this marker; a comment that quotes it does not count."""
    return text.rstrip().endswith(f"\n<!-- kardinal:{marker} -->")


def unmarked(text: str) -> str:
    """Return the text of a comment without its marker."""
    return _MARKER.sub("", text)
