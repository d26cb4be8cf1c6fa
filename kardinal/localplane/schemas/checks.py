"""The checks a schema puts on one value: enum, pattern, bounds and format.

Each keyword becomes a function that is made once, when its CRD is created, and answers None for a good value. A check
judges only the JSON types its keyword speaks of, so it may stand on a field of any type. Patterns are RE2, as on the
real server: Python's own engine would accept look-arounds that a cluster refuses, let `$` match before a newline, and
could be made to run for ever. Design: local-plane.md 4 (validation).
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import orjson
import re2  # type: ignore[import-untyped]

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.schemas.causes import Path, invalid, not_supported, render, too_long

__all__ = ["Check", "PatternError", "compile_checks"]

Check = Callable[[Any, Path], Cause | None]

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


class PatternError(ValueError):
    """A pattern that RE2 does not know."""


def compile_checks(source: JsonObject) -> tuple[Check, ...]:
    """The checks of one schema node, in the order in which the real server runs them."""
    makers: dict[str, Callable[[Any], Check]] = {
        "enum": _enum,
        "maxLength": _max_length,
        "minLength": _min_length,
        "pattern": _pattern,
        "multipleOf": _multiple_of,
        "format": _format,
    }
    checks = [make(source[keyword]) for keyword, make in makers.items() if keyword in source]
    if "maximum" in source:
        checks.append(_maximum(source["maximum"], exclusive=bool(source.get("exclusiveMaximum"))))
    if "minimum" in source:
        checks.append(_minimum(source["minimum"], exclusive=bool(source.get("exclusiveMinimum"))))
    return tuple(checks)


def _enum(supported: list[Any]) -> Check:
    known = {_exact(value) for value in supported}

    def check(value: Any, path: Path) -> Cause | None:
        return None if _exact(value) in known else not_supported(path, value, supported)

    return check


def _exact(value: Any) -> Any:
    """A key under which 1, 1.0 and True are not the same."""
    return value if type(value) is str else orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _max_length(limit: int) -> Check:
    def check(value: Any, path: Path) -> Cause | None:
        return too_long(path, limit) if type(value) is str and len(value) > limit else None

    return check


def _min_length(limit: int) -> Check:
    def check(value: Any, path: Path) -> Cause | None:
        if type(value) is str and len(value) < limit:
            return invalid(path, value, f"{render(path)} in body should be at least {limit} chars long")
        return None

    return check


def _pattern(pattern: str) -> Check:
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except re2.error as error:
        raise PatternError(pattern) from error

    # One search costs 10 us, most writes repeat the values of the write before.
    @lru_cache(maxsize=256)
    def matches(value: str) -> bool:
        return search(value) is not None

    def check(value: Any, path: Path) -> Cause | None:
        if type(value) is str and not matches(value):
            return invalid(path, value, f"{render(path)} in body should match '{pattern}'")
        return None

    return check


def _multiple_of(factor: float) -> Check:
    def check(value: Any, path: Path) -> Cause | None:
        if _number(value) and abs(value / factor - round(value / factor)) > 1e-9:
            return invalid(path, value, f"{render(path)} in body should be a multiple of {_plain(factor)}")
        return None

    return check


def _maximum(limit: float, *, exclusive: bool) -> Check:
    words = "less than" if exclusive else "less than or equal to"

    def check(value: Any, path: Path) -> Cause | None:
        if _number(value) and (value >= limit if exclusive else value > limit):
            return invalid(path, value, f"{render(path)} in body should be {words} {_plain(limit)}")
        return None

    return check


def _minimum(limit: float, *, exclusive: bool) -> Check:
    words = "greater than" if exclusive else "greater than or equal to"

    def check(value: Any, path: Path) -> Cause | None:
        if _number(value) and (value <= limit if exclusive else value < limit):
            return invalid(path, value, f"{render(path)} in body should be {words} {_plain(limit)}")
        return None

    return check


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _plain(number: float) -> str:
    return f"{number:g}" if isinstance(number, float) else str(number)


def _format(name: str) -> Check:
    valid = _FORMATS.get(name)

    def check(value: Any, path: Path) -> Cause | None:
        if valid is None or valid(value):
            return None
        shown = orjson.dumps(value).decode()
        cause = invalid(path, value, f"{render(path)} in body must be of type {name}: {shown}")
        return replace(cause, reason="FieldValueTypeInvalid")

    return check


def _integer(bits: int) -> Callable[[Any], bool]:
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return lambda value: not _number(value) or low <= value <= high


def _string(parse: Callable[[str], object]) -> Callable[[Any], bool]:
    def valid(value: Any) -> bool:
        if type(value) is not str:
            return True
        try:
            parse(value)
        except (ValueError, binascii.Error):
            return False
        return True

    return valid


def _matching(pattern: str) -> Callable[[str], None]:
    match = re2.compile(pattern, _OPTIONS).fullmatch

    def parse(text: str) -> None:
        if match(text) is None:
            raise ValueError(text)

    return parse


_MOMENT = _matching(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


@lru_cache(maxsize=512)
def _date_time(text: str) -> None:
    _MOMENT(text)
    datetime.fromisoformat(text[:19].upper())


_FORMATS: dict[str, Callable[[Any], bool]] = {
    "date-time": _string(_date_time),
    "date": _string(date.fromisoformat),
    "byte": _string(lambda text: base64.b64decode(text, validate=True)),
    "duration": _string(
        _matching(r"[+-]?(\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w)((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h|d|w))*|0")
    ),
    "email": _string(_matching(r"[^@\s]+@[^@\s]+")),
    "hostname": _string(
        _matching(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]{0,62}[A-Za-z0-9])?)*")
    ),
    "ipv4": _string(ipaddress.IPv4Address),
    "ipv6": _string(ipaddress.IPv6Address),
    "cidr": _string(lambda text: ipaddress.ip_network(text, strict=False)),
    "uri": _string(_matching(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")),
    "uuid": _string(uuid.UUID),
    "int32": _integer(32),
    "int64": _integer(64),
}
