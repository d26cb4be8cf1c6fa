"""Literal tokens as values.

The lexer accepts more than the language does (a string that ends in a lone backslash, an unknown escape), so the
text is decoded here, strictly.
"""

from __future__ import annotations

import re

from lark import Token

from kardinal.cel.errors import CompileError

__all__ = ["INT_MAX", "INT_MIN", "literal_value"]

INT_MIN = -(2**63)
INT_MAX = 2**63 - 1

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
            return _integer(token.value[:-1], position)
        case "FLOAT_LIT":
            return float(token.value)
        case "STRING_LIT" | "MLSTRING_LIT":
            return _text(token.value, position)
        case _:
            raise CompileError(position, "bytes literals are not supported")


def _integer(text: str, position: int) -> int:
    value = int(text, 16 if "0x" in text else 10)
    if not INT_MIN <= value <= INT_MAX:
        raise CompileError(position, "the number does not fit into 64 bits")
    return value


def _text(token: str, position: int) -> str:
    raw = token[0] in "rR"
    body = token[1:] if raw else token
    quotes = 3 if len(body) >= 6 and body[:3] in ('"""', "'''") else 1
    content = body[quotes:-quotes]
    if raw:
        return content

    def decoded(match: re.Match[str]) -> str:
        octal, byte, short, long, simple = match.groups()
        if octal:
            return chr(int(octal, 8))
        if digits := byte or short or long:
            code = int(digits, 16)
            if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
                return chr(code)
        elif simple in _SIMPLE:
            return _SIMPLE[simple]
        raise CompileError(position + len(token) - len(content) - quotes + match.start(), "unknown escape in a string")

    return _ESCAPE.sub(decoded, content)
