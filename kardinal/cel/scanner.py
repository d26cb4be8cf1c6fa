"""Find the expressions in a string, and show their values in it.

`${` opens an expression and its `}` closes it, but only CEL knows which `}` that is: braces inside string literals and
map literals do not count, so the scanner follows CEL's own lexical rules. `$${` stands for the text `${`: one dollar
goes away and nothing is evaluated, which is also how an expression meant for a nested Graph gets through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kardinal.cel.grammar import SOURCE_LIMIT

__all__ = ["Expression", "Segment", "Unscannable", "scan", "text_of"]

_OPENING = re.compile(r"(?<!\$)(\$+)\{")
_ESCAPED = r"(?:\\.|[^\\])"
_TOKEN = re.compile(r"(?P<prefix>\b[bB]?[rR])?(?P<quote>\"\"\"|'''|\"|')|//[^\n]*|\$\{|[{}]")
_LITERALS = {
    (quote, raw): re.compile(rf"(?s:{'.' if raw else _ESCAPED})*?{quote}")
    for quote in ('"""', "'''", '"', "'")
    for raw in (True, False)
}
"""From behind the opening quotes of a literal to behind its closing ones."""


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


def text_of(value: object) -> str | None:
    """Return how a value stands in the middle of a text; None for a list, a map or null, which have no text."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case str() | int() | float():
            return str(value)
        case _:
            return None


def _closing(text: str, position: int) -> int:
    """Return the index of the `}` that closes the expression starting at `position`."""
    depth, end = 0, position + SOURCE_LIMIT + 1
    while token := _TOKEN.search(text, position, end):
        position = token.end()
        if token["quote"]:
            literal = _LITERALS[token["quote"], bool(token["prefix"])].match(text, position, end)
            if literal is None:
                raise _unfinished(text, end, "a string literal that does not end")
            position = literal.end()
        elif token[0] == "${":
            raise Unscannable("an expression inside an expression; write `$${` for the text `${`")
        elif token[0] == "{":
            depth += 1
        elif token[0] == "}":
            if depth == 0:
                return token.start()
            depth -= 1
    raise _unfinished(text, end, "`${` without its `}`; write `$${` for the text `${`")


def _unfinished(text: str, end: int, message: str) -> Unscannable:
    return Unscannable(message if len(text) <= end else f"the expression is longer than {SOURCE_LIMIT} characters")
