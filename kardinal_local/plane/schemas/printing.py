"""Print values as a Go program does: `%q` for texts, `%v` for numbers, its JSON for everything else.

A refusal repeats the value at fault, and a client that compares two answers compares that too.
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final

import orjson

__all__ = ["as_json", "number", "quoted", "shown"]

_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


def shown(value: Any) -> str:
    """A value in a sentence."""
    match value:
        case str():
            return quoted(value)
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number(value)
    return as_json(value)


def quoted(text: str) -> str:
    """Between double quotes, with everything escaped that does not print."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char == " " or unicodedata.category(char) not in _HIDDEN:
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def number(value: float) -> str:
    """The shortest text that reads back as the number; an exponent where Go's `%v` uses one."""
    if isinstance(value, int):
        return str(value)
    if value and not 1e-4 <= abs(value) < 1e6:
        mantissa, exponent = _scientific(value)
        return f"{mantissa}e{exponent[0]}{exponent[1:].zfill(2)}"
    return _plain(value)


def _scientific(value: float) -> tuple[str, str]:
    mantissa, _, exponent = _exactly(value, "e").partition("e")
    return mantissa, exponent


def _plain(value: float) -> str:
    return _exactly(value, "f").removesuffix(".0")


def _exactly(value: float, form: str) -> str:
    # Half a megabyte for the few refusals that tell of fractions.
    from decimal import Decimal  # noqa: PLC0415

    number = Decimal(repr(value))
    return format(number.normalize() if form == "e" else number, form)


def as_json(value: Any) -> str:
    """JSON with sorted keys and the escapes that keep it safe inside HTML."""
    match value:
        case dict():
            return "{" + ",".join(f"{_text(key)}:{as_json(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(as_json, value)) + "]"
        case str():
            return _text(value)
        case float():
            if value and not 1e-6 <= abs(value) < 1e21:
                return "e".join(_scientific(value))
            return _plain(value)
    return orjson.dumps(value).decode()


def _text(text: str) -> str:
    written = orjson.dumps(text).decode()
    for char, escape in _HTML.items():
        if char in written:
            written = written.replace(char, escape)
    return written
