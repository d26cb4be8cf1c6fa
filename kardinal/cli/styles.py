"""Escape control characters in text for a terminal, except the colours that kardinal adds.

Names, messages and errors may hold escape sequences of others. So a style is not an escape sequence until it is
printed; before, it begins with a mark that is random in each process, which others cannot forge.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

import click

from kardinal.objects.text import escaped

__all__ = ["for_terminal", "mark_style", "visible", "without_styles"]

_MARK: Final = f"\x1b<{os.urandom(16).hex()}>"
_STYLE: Final = re.compile(re.escape(_MARK) + r"\[([0-9;]*)m")
_LAYOUT: Final = "\n\t"


def mark_style(text: str, **style: Any) -> str:
    """Return `text` in a style of `click.style`, such as `fg="red"`, with marks in place of escape sequences."""
    begin, end = (each.replace("\x1b", _MARK) for each in click.style("\0", **style).split("\0"))
    return f"{begin}{text}{end}"


def without_styles(text: str) -> str:
    """Return `text` without the marks of styles."""
    return _STYLE.sub("", text)


def visible(text: str) -> str:
    """Escape the characters that are not visible, except newlines, tabs and the marks of styles."""
    return _between_styles(text, f"{_MARK}[")


def for_terminal(text: str) -> str:
    """Return `text` for printing: the marks of styles become escape sequences, other control characters are escaped."""
    return _between_styles(text, "\x1b[")


def _between_styles(text: str, begin: str) -> str:
    """Escape the text between the marks of styles, and write each mark as its SGR code after `begin`."""
    parts = enumerate(_STYLE.split(text))
    return "".join(f"{begin}{part}m" if index % 2 else escaped(part, kept=_LAYOUT) for index, part in parts)
