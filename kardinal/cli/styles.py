"""Text for a terminal: the colours are ours, and every other control character is shown instead of obeyed.

Names, messages and errors are text of other people. A style is therefore no escape sequence before it is printed, but
begins with a mark that is random in each process: no text of others can hold it.
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
    """Return `text` between the marks of a style, such as `fg="red"`."""
    begin, end = (each.replace("\x1b", _MARK) for each in click.style("\0", **style).split("\0"))
    return f"{begin}{text}{end}"


def without_styles(text: str) -> str:
    """Return `text` without the marks of styles."""
    return _STYLE.sub("", text)


def visible(text: str) -> str:
    """Escape the characters that are not visible, except the ends of lines, tabs and the marks of styles."""
    return _between_styles(text, f"{_MARK}[")


def for_terminal(text: str) -> str:
    """Return `text` as it is printed: its styles as escape sequences, and nothing else that a terminal obeys."""
    return _between_styles(text, "\x1b[")


def _between_styles(text: str, begin: str) -> str:
    """Escape what stands between the marks of styles, which become codes after `begin`."""
    parts = enumerate(_STYLE.split(text))
    return "".join(f"{begin}{part}m" if index % 2 else escaped(part, kept=_LAYOUT) for index, part in parts)
