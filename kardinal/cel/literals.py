"""Literal tokens as values.

The lexer accepts more than the language does (a string that ends in a lone backslash, an unknown escape), so the
text is decoded here, strictly.
"""

from __future__ import annotations

import re

from lark import Token

from kardinal.cel.errors import CompileError
from kardinal.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint

__all__ = ["literal_value"]

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    '"': '"',
    "'": "'",
    "`": "`",
    "?": "?",
    "\\": "\\",
}
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{2})|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.?))", re.DOTALL)


def literal_value(token: Token) -> object:
    position = token.start_pos or 0
    match token.type:
        case "BOOL_LIT":
            return token.value == "true"
        case "NULL_LIT":
            return None
        case "INT_LIT":
            return _integer(token.value, position)
        case "UINT_LIT":
            return Uint(_integer(token.value[:-1], position, least=0, most=UINT_MAX))
        case "FLOAT_LIT":
            return float(token.value)
        case "STRING_LIT" | "MLSTRING_LIT":
            return _text(token.value, position)
        case _:
            return _bytes(token.value, position)


def _integer(text: str, position: int, *, least: int = INT_MIN, most: int = INT_MAX) -> int:
    value = int(text, 16 if "0x" in text else 10)
    if not least <= value <= most:
        raise CompileError(position, "the number does not fit into 64 bits")
    return value


def _text(token: str, position: int) -> str:
    content, before, raw = _content(token)
    return content if raw else _decoded(content, position + before)


def _bytes(token: str, position: int) -> bytes:
    content, before, raw = _content(token[1:])
    if raw:
        return content.encode()
    # An escape such as `\\xff` is one byte; every other character is its bytes in UTF-8.
    parts = list[bytes]()
    end = 0
    for match in _ESCAPE.finditer(content):
        octal, byte, *_ = match.groups()
        parts.append(content[end : match.start()].encode())
        if octal or byte:
            parts.append(bytes([int(octal, 8) if octal else int(byte, 16)]))
        else:
            parts.append(_decoded(match[0], position + 1 + before + match.start()).encode())
        end = match.end()
    return b"".join([*parts, content[end:].encode()])


def _content(token: str) -> tuple[str, int, bool]:
    """Return what is between the quotes of a string, its offset in the token, and whether it is a raw string."""
    raw = token[0] in "rR"
    body = token[1:] if raw else token
    quotes = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    return body[quotes:-quotes], len(token) - len(body) + quotes, raw


def _decoded(content: str, position: int) -> str:
    def character(match: re.Match[str]) -> str:
        octal, byte, short, long, simple = match.groups()
        if octal:
            return chr(int(octal, 8))
        if digits := byte or short or long:
            code = int(digits, 16)
            if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                return chr(code)
        elif simple in _SIMPLE:
            return _SIMPLE[simple]
        raise CompileError(position + match.start(), "unknown escape in a string")

    return _ESCAPE.sub(character, content)
