"""Find the expressions in a string, and show their values in it.

`${` opens an expression and `}` closes it, but braces inside string literals and map literals do not count, so the
scanner follows the lexical rules of CEL. `$${` stands for the text `${`: one dollar is removed and no expression is
evaluated. In this way an expression for a nested Graph can be written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kardinal.cel.grammar import SOURCE_LIMIT

__all__ = ["Expression", "Segment", "Unscannable", "scan", "text_of"]

_PLAIN = re.compile(r"""\$\{((?:[^{}"'$/\\]|"[^"{}\\]*"|'[^'{}\\]*')++)\}""")
"""One expression and nothing else, in which a brace, a comment or an escape cannot be: nearly all are like that."""
_OPENING = re.compile(r"(?<!\$)(\$+)\{")
_ESCAPED = r"(?:\\.|[^\\])"
_TOKEN = re.compile(r"(?P<prefix>\b[bB]?[rR])?(?P<quote>\"\"\"|'''|\"|')|//[^\n]*|\$\{|[{}]")
_LITERALS = {
    (quote, raw): re.compile(rf"(?s:{'.' if raw else _ESCAPED})*?{quote}")
    for quote in ('"""', "'''", '"', "'")
    for raw in (True, False)
}
"""The rest of a string literal after its opening quotes, up to and including its closing ones, by the quotes."""


@dataclass(frozen=True, slots=True)
class Expression:
    """The text between `${` and `}`."""

    source: str


Segment = str | Expression


class Unscannable(Exception):
    """A string whose expressions cannot be told from its text."""


def scan(text: str) -> list[Segment]:
    """Return the texts and expressions of `text` in their order; neighbouring texts are joined."""
    if len(text) <= SOURCE_LIMIT and (plain := _PLAIN.fullmatch(text)):
        return [Expression(plain[1])]
    segments: list[Segment] = []
    literal = ""
    position = 0
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
        literal = ""
        position = end + 1
    literal += text[position:]
    return [*segments, literal] if literal or not segments else segments


def text_of(value: object) -> str | None:
    """Return the text of a value inside a longer text; None for a list, a map or null, which have none."""
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
    depth = 0
    end = position + SOURCE_LIMIT + 1
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
    return Unscannable(message if len(text) <= end else f"the expression is longer than {SOURCE_LIMIT} bytes")
