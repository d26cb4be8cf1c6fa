"""Find the expressions in a string.

`${` opens an expression and its `}` closes it, but only CEL knows which `}` that is: braces inside string literals and
map literals do not count, so the scanner follows CEL's own lexical rules. `$${` stands for the text `${`: one dollar
goes away and nothing is evaluated, which is also how an expression meant for a nested Graph gets through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Expression", "Segment", "Unscannable", "scan"]

_OPENING = re.compile(r"(\$+)\{")
_TOKEN = re.compile(r"(?P<prefix>\b[bB]?[rR])?(?P<quote>\"\"\"|'''|\"|')|//[^\n]*|\$\{|[{}]")


@dataclass(frozen=True, slots=True)
class Expression:
    """The text between `${` and `}`."""

    source: str


Segment = str | Expression


class Unscannable(Exception):
    """A string whose expressions cannot be told from its text."""


def scan(text: str) -> list[Segment]:
    """Text and expressions in turn; neighbouring texts are one."""
    segments: list[Segment] = []
    literal, position = "", 0
    while opening := _OPENING.search(text, position):
        dollars = len(opening[1])
        literal += text[position : opening.start()]
        if dollars > 1:
            literal += "$" * (dollars - 1) + "{"
            position = opening.end()
            continue
        end = _closing(text, opening.end())
        if literal:
            segments.append(literal)
        segments.append(Expression(text[opening.end() : end]))
        literal, position = "", end + 1
    literal += text[position:]
    return [*segments, literal] if literal or not segments else segments


def _closing(text: str, position: int) -> int:
    """Return the index of the `}` that closes the expression starting at `position`."""
    depth = 0
    while token := _TOKEN.search(text, position):
        position = token.end()
        if token["quote"]:
            position = _after_literal(text, position, quote=token["quote"], raw=bool(token["prefix"]))
        elif token[0] == "${":
            raise Unscannable("an expression inside an expression; write `$${` for the text `${`")
        elif token[0] == "{":
            depth += 1
        elif token[0] == "}":
            if depth == 0:
                return token.start()
            depth -= 1
    raise Unscannable("`${` without its `}`; write `$${` for the text `${`")


def _after_literal(text: str, position: int, *, quote: str, raw: bool) -> int:
    while position < len(text):
        if text.startswith(quote, position):
            return position + len(quote)
        position += 2 if text[position] == "\\" and not raw else 1
    raise Unscannable("a string literal that does not end")
