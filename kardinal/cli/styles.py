"""Text for a terminal: the colours are ours, and every other control character is shown instead of obeyed.

Names, messages and errors are text of other people. A style is therefore no escape sequence before it is printed, but
begins with a mark that is random in each process: no text of others can hold it.
"""

from __future__ import annotations

import os
import re
from typing import Any, Final

import click

__all__ = ["for_terminal", "mark_style", "printable", "visible", "without_styles"]

_MARK: Final = f"\x1b<{os.urandom(16).hex()}>"
_STYLE: Final = re.compile(re.escape(_MARK) + r"\[([0-9;]*)m")
_LAYOUT: Final = frozenset("\n\t")


def mark_style(text: str, **style: Any) -> str:
    """Return `text` between the marks of a style, such as `fg="red"`."""
    begin, end = (each.replace("\x1b", _MARK) for each in click.style("\0", **style).split("\0"))
    return f"{begin}{text}{end}"


def without_styles(text: str) -> str:
    """Return `text` without the marks of styles."""
    return _STYLE.sub("", text)


def printable(text: str) -> str:
    """Escape the characters that are not visible, such as those that move the cursor or turn the direction of text."""
    return "".join(_escaped(char) for char in text)


def visible(text: str) -> str:
    """Escape the characters that are not visible, except the ends of lines, tabs and the marks of styles."""
    return "".join(f"{_MARK}[{part}m" if index % 2 else _lines(part) for index, part in enumerate(_STYLE.split(text)))


def for_terminal(text: str) -> str:
    """Return `text` as it is printed: its styles as escape sequences, and nothing else that a terminal obeys."""
    return "".join(f"\x1b[{part}m" if index % 2 else _lines(part) for index, part in enumerate(_STYLE.split(text)))


def _lines(text: str) -> str:
    return "".join(char if char in _LAYOUT else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode()
