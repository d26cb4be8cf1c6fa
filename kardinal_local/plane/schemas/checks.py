"""Check one scalar against the keywords of its schema: enum, lengths, pattern, bounds, multiples and format.

Each check is made once, when its CRD is compiled, and adds what it finds to a list. A check judges only the JSON types
its keyword speaks of, so it may stand on a field of any type. Patterns are RE2, as on the real server: Python's own
engine would accept look-arounds that a cluster refuses, let `$` match before a newline, and could be made to run for
ever. Numbers follow the server's Go, quirks included: a whole number meets its bounds with their fractions cut off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import orjson
import re2  # type: ignore[import-untyped]

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import NOWHERE, invalid, not_supported, too_long, type_invalid
from kardinal_local.plane.schemas.formats import format_of, is_known
from kardinal_local.plane.schemas.printing import as_json, number, quoted

__all__ = ["Check", "check_enum", "compile_pattern", "is_pattern", "number_check", "text_check"]

Check = Callable[[Any, str, list[Cause]], None]

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_MAX_FLOAT32: Final = 3.4028234663852886e38
_INTEGERS: Final = {"int32": 32, "int64": 64}


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match; raises `re2.error`."""
    search = re2.compile(pattern, _OPTIONS).search

    # One search costs 10 us, most writes repeat the values of the write before.
    @lru_cache(maxsize=256)
    def matches(value: str) -> bool:
        return search(value) is not None

    return matches


def is_pattern(text: str) -> bool:
    """Whether a text is a regular expression."""
    try:
        re2.compile(text, _OPTIONS)
    except re2.error:
        return False
    return True


def text_check(schema: JsonObject) -> Check | None:
    """The first of its lengths and pattern that a text misses, then its format."""
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    name = format_name(schema)
    valid = format_of(name)
    if most is None and least is None and not pattern and valid is None:
        return None
    matches = compile_pattern(pattern) if pattern else None

    def check(value: str, path: str, causes: list[Cause]) -> None:
        if most is not None and len(value) > most:
            causes.append(too_long(path, most))
        elif least is not None and len(value) < least:
            causes.append(invalid(path, value, f"{path} in body should be at least {least} chars long"))
        elif matches is not None and not matches(value):
            causes.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        if valid is not None and not valid(value):
            causes.append(type_invalid(path, value, f"{path} in body must be of type {name}: {quoted(value)}"))

    return check


def format_name(schema: JsonObject) -> str:
    """The format that counts: the server drops those it does not know for the type."""
    kinds = types_of(schema)
    name = schema.get("format") or ""
    return name if name and is_known(kinds[0] if len(kinds) == 1 else "", name) else ""


def types_of(schema: JsonObject) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def check_enum(value: Any, supported: list[Any], path: str, causes: list[Cause]) -> None:
    if not any(_same(value, one) for one in supported):
        causes.append(not_supported(path, value, [one if isinstance(one, str) else as_json(one) for one in supported]))


def _same(value: Any, wanted: Any) -> bool:
    if value is None or wanted is None:
        return False
    if _is_number(value) and _is_number(wanted):
        return bool(type(wanted)(value) == wanted)
    if value.__class__ is not wanted.__class__:
        return False
    if value.__class__ in (dict, list):
        option = orjson.OPT_SORT_KEYS
        return orjson.dumps(value, option=option) == orjson.dumps(wanted, option=option)
    return bool(value == wanted)


def number_check(schema: JsonObject) -> Check | None:
    """Range of the type and format, multiples, least and most, in the order of the server's report."""
    kinds = types_of(schema)
    kind = kinds[0] if len(kinds) == 1 and kinds[0] in ("integer", "number") else ""
    form = format_name(schema) if kind else ""
    ranged = _range_of(kind, form)
    parts = [
        _multiple(schema["multipleOf"], ranged) if schema.get("multipleOf") is not None else None,
        _bound(schema["minimum"], bool(schema.get("exclusiveMinimum")), "Minimum", ranged)
        if schema.get("minimum") is not None
        else None,
        _bound(schema["maximum"], bool(schema.get("exclusiveMaximum")), "Maximum", ranged)
        if schema.get("maximum") is not None
        else None,
    ]
    checks = [part for part in parts if part is not None]
    if not checks and kind != "integer" and form != "float":
        return None

    def check(value: float, path: str, causes: list[Cause]) -> None:
        _report(ranged(value, "Checked", path), causes)
        for one in checks:
            one(value, path, causes)

    return check


_Ranged = Callable[[float, str, str], str | None]


def _range_of(kind: str, form: str) -> _Ranged:
    """Whether a number fits its type and format; what the server says when it does not."""

    def ranged(value: float, what: str, path: str) -> str | None:
        if kind == "integer":
            bits = _INTEGERS.get(form, 64)
            whole = isinstance(value, int) or value.is_integer()
            fits = whole and -(1 << bits - 1) <= value < 1 << bits - 1
        else:
            fits = form != "float" or abs(value) <= _MAX_FLOAT32
        if fits:
            return None
        dialect = f"with format {form}" if form else "(default format)"
        return f"{what} value must be of type {kind} {dialect} in {path}"

    return ranged


def _report(problem: str | None, causes: list[Cause]) -> bool:
    if problem is not None:
        causes.append(Cause("FieldValueInvalid", NOWHERE, f'Invalid value: "": {problem}'))
    return problem is not None


def _multiple(factor: float, ranged: _Ranged) -> Check:
    def check(value: float, path: str, causes: list[Cause]) -> None:
        whole = isinstance(value, int) and not _report(ranged(factor, "MultipleOf", path), causes)
        divisor: float = math.trunc(factor) if whole else float(factor)
        dividend = value if whole else float(value)
        if divisor <= 0:
            words = f"factor MultipleOf declared for {path} must be positive: {number(divisor)}"
            causes.append(invalid(path, divisor, words))
        elif not (value % divisor == 0 if whole else _is_whole(_quotient(dividend, divisor))):
            causes.append(invalid(path, dividend, f"{path} in body should be a multiple of {number(divisor)}"))

    return check


def _quotient(value: float, factor: float) -> float:
    return 1 / factor * value if factor < 1 else value / factor


def _is_whole(value: float) -> bool:
    """Whether a double is a whole number, give or take its own inexactness."""
    if not math.isfinite(value) or abs(value) > 2**53 - 1:
        return False
    nearest = math.trunc(value)
    return value == nearest or abs(value - nearest) / (abs(value) + abs(nearest)) < 1e-9


_WORDS: Final = {
    ("Maximum", False): "less than or equal to",
    ("Maximum", True): "less than",
    ("Minimum", False): "greater than or equal to",
    ("Minimum", True): "greater than",
}


def _bound(limit: float, exclusive: bool, what: str, ranged: _Ranged) -> Check:
    words = _WORDS[(what, exclusive)]
    sign = 1 if what == "Maximum" else -1

    def check(value: float, path: str, causes: list[Cause]) -> None:
        whole = not _report(ranged(limit, f"{what} boundary", path), causes) and isinstance(value, int)
        bound: float = math.trunc(limit) if whole else float(limit)
        actual = value if whole else float(value)
        excess = sign * (actual - bound)
        if excess > 0 or (exclusive and excess == 0):
            causes.append(invalid(path, actual, f"{path} in body should be {words} {number(bound)}"))

    return check


def _is_number(value: Any) -> bool:
    return value.__class__ in (int, float)
