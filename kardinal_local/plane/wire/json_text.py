"""Decode JSON as the real server does: more leniently than orjson, and with its error messages.

orjson is fast and strict. The real server accepts what orjson refuses (bytes that are no UTF-8 become U+FFFD, halves of
surrogate pairs too), words its refusals in its own way, and reports a key that stands twice in an object, which
orjson drops in silence. All of that is done here and only when it is needed: a body that came compact and well formed
costs one comparison of lengths.

Trap: integers beyond 64 bits with a sign are floating point numbers to the real server; a validator must not take them
for integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from json.decoder import JSONDecodeError
from typing import Any, NoReturn, TypeAlias

import orjson

from kardinal_local.plane.errors import LocalPlaneError

__all__ = ["MalformedJson", "NumberOutOfRange", "decode_json", "decode_merged", "duplicate_fields"]

DUPLICATES_TOLD = 100
DUPLICATES_LENGTH = 256 * 1024
"""Characters of all paths that are told: each may be as long as the body."""
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_INTEGERS = range(-(2**63), 2**63)
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')
_STRUCTS = ("metadata", "spec", "status")
_LITERALS = {"t": "true", "f": "false", "n": "null"}
_QUOTED = {"'": r"'\''", "\a": r"'\a'", "\b": r"'\b'", "\f": r"'\f'", "\n": r"'\n'", "\r": r"'\r'", "\t": r"'\t'"}
_EARLY_END = "unexpected end of JSON input"
_TOO_DEEP = "exceeded max depth"


class MalformedJson(LocalPlaneError):
    """This is no JSON; worded as the real server's parser does."""


class NumberOutOfRange(LocalPlaneError):
    """A number that no float can hold."""


class _Pairs(list[tuple[str, Any]]):
    """An object with every key it was written with."""


_CONTAINERS = (_Pairs, list)
_Path: TypeAlias = "tuple[_Path, str | int] | None"


def decode_json(body: bytes) -> Any:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        document = _decode_leniently(body)
    return _with_floats(document) if _LONG_NUMBER.search(body) else document


def decode_merged(body: bytes) -> Any:
    """The document of a body in which keys stand twice, as a Go type reads it: one value over the other."""
    document = json.loads(_repaired(body), object_pairs_hook=_merged, parse_int=_integer)
    return _with_floats(document)


def duplicate_fields(body: bytes, document: Any) -> tuple[str, ...]:
    """The paths of keys that stand more than once in their object, in the order of the text."""
    if len(orjson.dumps(document)) == len(body):
        return ()
    found: dict[str, None] = {}
    length = 0
    for path in _duplicates(json.loads(_repaired(body), object_pairs_hook=_Pairs, parse_int=str), None):
        text = _written(path)
        found[text] = None
        length += len(text)
        if len(found) == DUPLICATES_TOLD or length > DUPLICATES_LENGTH:
            break
    return tuple(found)


def _merged(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return _merge_into({}, pairs)


def _merge_into(found: dict[str, Any], pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Add the pairs to an object that is being read; what it holds already is not copied for each of them."""
    for key, value in pairs:
        if key not in found:
            found[key] = value
        elif value is not None or key not in _STRUCTS:
            # To a struct that is there null says nothing.
            found[key] = _over(found[key], value)
    return found


def _over(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return _merge_into(old, new.items())
    if isinstance(old, list) and isinstance(new, list):
        return [*map(_over, old, new), *new[len(old) :]]
    return new


def _duplicates(value: Any, path: _Path) -> Iterator[_Path]:
    if isinstance(value, _Pairs):
        seen = set()
        for key, item in value:
            if key in seen:
                yield path, key
            seen.add(key)
            if item.__class__ in _CONTAINERS:
                yield from _duplicates(item, (path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if item.__class__ in _CONTAINERS:
                yield from _duplicates(item, (path, index))


def _written(path: _Path) -> str:
    """A path as text, which is made only of those that are told."""
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(steps)).removeprefix(".")


def _decode_leniently(body: bytes) -> Any:
    text = body.decode("latin-1")  # one character a byte: positions stay true, and any byte may stand in a string
    try:
        json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=str)
    except JSONDecodeError as error:
        raise MalformedJson(_problem(error.msg, text, error.pos)) from None
    except _Constant as constant:
        name = str(constant)
        where = "in numeric literal" if name.startswith("-") else "looking for beginning of value"
        raise MalformedJson(_invalid(name.lstrip("-")[0], where)) from None
    except RecursionError:
        raise MalformedJson(_invalid("[" if text.lstrip().startswith("[") else "{", _TOO_DEEP)) from None
    return json.loads(_repaired(body), parse_int=_integer)


class _Constant(Exception):
    """NaN or Infinity, which Python reads and Go does not."""


def _refuse_constant(name: str) -> NoReturn:
    raise _Constant(name)


def _finite(digits: str) -> float:
    number = float(digits)
    if number in {float("inf"), float("-inf")}:
        raise NumberOutOfRange(f"json: cannot unmarshal number {digits} into Go value of type float64")
    return number


def _integer(digits: str) -> float:
    # Python refuses to read thousands of digits.
    return _finite(digits) if len(digits) > 20 else int(digits)


def _repaired(body: bytes) -> str:
    """The text with U+FFFD for everything that is no character."""
    paired = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)
    return paired.decode(errors="replace")


def _with_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_floats(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_floats(item) for item in value]
    return float(value) if isinstance(value, int) and value not in _INTEGERS else value


def _problem(told: str, text: str, position: int) -> str:
    """Python's complaint in the words of Go, which says what it was in the middle of."""
    if told.startswith("Unterminated string"):
        return _EARLY_END
    if told.startswith("Invalid \\u"):
        digits = re.compile("[0-9a-fA-F]*").match(text, text.index("u", position - 1) + 1)
        return _at(text, digits.end() if digits else position, r"in \u hexadecimal character escape")
    if told.startswith("Invalid \\"):
        return _at(text, position + 1, "in string escape code")
    if told.startswith("Invalid control"):
        return _at(text, position, "in string literal")
    start = len(text) - len(text[position:].lstrip(" \t\r\n"))
    if told.startswith("Expecting property name"):
        return _at(text, start, "looking for beginning of object key string")
    if told.startswith("Expecting ':'"):
        return _at(text, start, "after object key")
    if told.startswith("Expecting value"):
        return _at_value(text, start)
    if problem := _in_number(text, position):
        return problem
    if told.startswith("Extra data"):
        return _at(text, start, "after top-level value")
    return _at(text, start, "after array element" if _container(text, start) == "[" else "after object key:value pair")


def _at_value(text: str, start: int) -> str:
    literal = _LITERALS.get(text[start : start + 1], "")
    for offset, expected in enumerate(literal):
        if text[start + offset : start + offset + 1] != expected:
            return _at(text, start + offset, f"in literal {literal} (expecting '{expected}')", ending=" ")
    if text[start : start + 1] == "-":
        return _at(text, start + 1, "in numeric literal", ending=" ")
    return _at(text, start, "looking for beginning of value")


def _in_number(text: str, position: int) -> str:
    """A number that stops too early is where Python sees the end of a shorter one."""
    rest = re.compile(r"(\.)(?!\d)|[eE][+-]?(?!\d)").match(text, position)
    if rest is None or not text[position - 1 : position].isdigit():
        return ""
    where = "after decimal point in numeric literal" if rest[1] else "in exponent of numeric literal"
    return _at(text, rest.end(), where, ending=" ")


def _container(text: str, end: int) -> str:
    opened = []
    for found in _BRACKETS.finditer(text, 0, end):
        if found[0] in "[{":
            opened.append(found[0])
        elif found[0] in "]}" and opened:
            opened.pop()
    return opened[-1] if opened else ""


def _at(text: str, position: int, where: str, *, ending: str = "") -> str:
    """The complaint about one character; Go takes the end of a number or literal for a space."""
    character = text[position : position + 1] or ending
    return _invalid(character, where) if character else _EARLY_END


def _invalid(character: str, where: str) -> str:
    quoted = _QUOTED.get(character)
    if quoted is None and (character < " " or character == "\x7f"):
        quoted = f"'\\x{ord(character):02x}'"
    elif quoted is None:
        quoted = f"'{character}'" if character.isprintable() else f"'\\u{ord(character):04x}'"
    return f"invalid character {quoted} {where}"
