"""Functions on strings.

Every result is bounded before it is built: `replace` and `join` could otherwise turn a kilobyte of expression into
gigabytes. `prices` bounds the work. Regular expressions run on RE2, whose time is linear in the text times the size of
the program; its memory is limited, since RE2 keeps what it has compiled and what it has seen.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, cast

import re2  # type: ignore[import-untyped]

from kardinal.cel.errors import Fault
from kardinal.cel.formatting import formatted
from kardinal.cel.overloads import Function

__all__ = ["FOUND_LIMIT", "TEXT_FUNCTIONS", "TEXT_LIMIT", "concatenate", "join_bytes", "program_size"]

TEXT_LIMIT = 1 << 20
"""The most characters of one string."""

_PATTERN_MEMORY: Final = 256 << 10
"""The most bytes for one compiled pattern and the states it has seen; RE2's cache holds 128 of them."""

_ESCAPES: Final = str.maketrans(
    {
        **{'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f"},
        **{"\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"},
    }
)
_LOWER: Final = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER: Final = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


FOUND_LIMIT: Final = 1_000
"""The most parts that `findAll` returns."""


def _bounded(length: int) -> None:
    if length > TEXT_LIMIT:
        raise Fault("limit", "the text is too long")


def concatenate(left: str, right: str) -> str:
    _bounded(len(left) + len(right))
    return left + right


def join_bytes(left: bytes, right: bytes) -> bytes:
    _bounded(len(left) + len(right))
    return left + right


def _compiled(pattern: str) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY
    options.never_capture = True
    return re2.compile(pattern, options)


def program_size(pattern: str) -> int:
    """Return the instructions of a compiled pattern; 0 for one that RE2 refuses."""
    try:
        return int(_compiled(pattern).programsize)
    except re2.error:
        return 0


def _pattern(pattern: str, function: str) -> re2._Regexp:
    try:
        return _compiled(pattern)
    except re2.error:
        raise Fault("conversion", f"{function}() needs a valid RE2 pattern, of moderate size") from None


def _matches(text: str, pattern: str) -> bool:
    return _pattern(pattern, "matches").search(text) is not None


def _find(text: str, pattern: str) -> str:
    match = _pattern(pattern, "find").search(text)
    return "" if match is None else str(match.group(0))


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    most = FOUND_LIMIT if limit < 0 else min(limit, FOUND_LIMIT)
    matches = _pattern(pattern, "findAll").finditer(text)
    found = [str(match.group(0)) for match in islice(matches, most + 1)] if limit else []
    if len(found) > FOUND_LIMIT:
        raise Fault("limit", f"findAll() finds more than {FOUND_LIMIT} parts; give it a limit")
    return found[:most]


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    found = text.count(old) if limit < 0 else min(limit, text.count(old))
    _bounded(len(text) + found * max(0, len(new) - len(old)))
    return text.replace(old, new, limit)


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    return list(text) if not 0 < limit < len(text) else [*text[: limit - 1], text[limit - 1 :]]


def _join(items: list[object], separator: str = "") -> str:
    if not all(isinstance(item, str) for item in items):
        raise Fault("type", "join() needs a list of strings")
    texts = cast("list[str]", items)
    _bounded(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= stop <= len(text):
        raise Fault("conversion", "substring() was asked for a range outside the text")
    return text[start:stop]


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise Fault("conversion", "charAt() was asked for a position outside the text")
    return text[index : index + 1]


def _index(text: str, part: str, start: int) -> int:
    if not 0 <= start <= len(text):
        raise Fault("conversion", "indexOf() was asked for a position outside the text")
    return text.find(part, start)


def _last_index(text: str, part: str, last: int) -> int:
    """Return the last index, up to `last`, at which `part` starts."""
    if not 0 <= last <= len(text):
        raise Fault("conversion", "lastIndexOf() was asked for a position outside the text")
    return text.rfind(part, 0, last + len(part))


def _quoted(text: str) -> str:
    """Return the text between double quotes, with the escapes of the language."""
    return f'"{text.translate(_ESCAPES)}"'


def _lower(text: str) -> str:
    return text.translate(_LOWER)


def _upper(text: str) -> str:
    return text.translate(_UPPER)


TEXT_FUNCTIONS: dict[str, Function] = {
    "contains": Function({(str, str): lambda text, part: part in text}),
    "startsWith": Function({(str, str): str.startswith}),
    "endsWith": Function({(str, str): str.endswith}),
    "matches": Function({(str, str): _matches}),
    "replace": Function({(str, str, str): _replace, (str, str, str, int): _replace}),
    "split": Function({(str, str): _split, (str, str, int): _split}),
    "join": Function({(list,): _join, (list, str): _join}),
    "lowerAscii": Function({(str,): _lower}),
    "upperAscii": Function({(str,): _upper}),
    "trim": Function({(str,): str.strip}),
    "substring": Function({(str, int): _substring, (str, int, int): _substring}),
    "charAt": Function({(str, int): _char_at}),
    "indexOf": Function({(str, str): str.find, (str, str, int): _index}),
    "lastIndexOf": Function({(str, str): str.rfind, (str, str, int): _last_index}),
    "reverse": Function({(str,): lambda text: text[::-1]}),
    "find": Function({(str, str): _find}),
    "findAll": Function({(str, str): _find_all, (str, str, int): _find_all}),
    "strings.quote": Function({(str,): _quoted}),
    "format": Function({(str, list): formatted}),
}
