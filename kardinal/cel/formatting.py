"""Values as text: `"%s has %d pods".format([name, count])`, with the clauses of cel-go's strings extension."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from kardinal.cel.errors import Fault
from kardinal.cel.values import Type, duration_text, timestamp_text, type_name

__all__ = ["CLAUSE", "PRECISION_LIMIT", "formatted", "number_text"]

PRECISION_LIMIT: Final = 100
"""The most digits after the point."""

CLAUSE: Final = re.compile(r"%(%|(?:\.(\d+))?([sdfeboxX])|.?)", re.DOTALL)
"""One clause of a format: `%%`, or a verb with its precision."""


def formatted(pattern: str, arguments: list[object]) -> str:
    """Return `pattern` with its clauses replaced by the arguments, in their order."""
    rest = iter(arguments)
    return CLAUSE.sub(lambda match: _clause(match, rest), pattern)


def number_text(value: float) -> str:
    """Return the shortest text that reads back as the number; a whole number has no point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _clause(match: re.Match[str], rest: Iterator[object]) -> str:
    if match[1] == "%":
        return "%"
    verb = match[3]
    if verb is None:
        raise Fault("conversion", "format() knows the clauses %s %d %f %e %b %o %x %X, and %% for a percent sign")
    digits = match[2] or "6"
    if len(digits) > 3 or int(digits) > PRECISION_LIMIT:
        raise Fault("limit", f"format() writes at most {PRECISION_LIMIT} digits after the point")
    try:
        value = next(rest)
    except StopIteration:
        raise Fault("conversion", "format() has more clauses than arguments") from None
    text = _written(value, verb, int(digits))
    if text is None:
        raise Fault("type", f"format() cannot write {type_name(value)} as %{verb}")
    return text


def _written(value: object, verb: str, precision: int) -> str | None:
    """Return a value as a clause writes it; None where the clause does not take its type."""
    match value:
        case _ if verb == "s":
            return _text(value)
        case bool():
            return str(int(value)) if verb == "b" else None
        case str() | bytes() if verb in "xX":
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits if verb == "x" else digits.upper()
        case float() if verb in "dfe" and not math.isfinite(value):
            return number_text(value)
        case int() | float() if verb in "fe":
            return f"{value:.{precision}{verb}}"
        case float() if verb == "d":
            return number_text(value)
        case int() if verb in "dboxX":
            return format(int(value), verb)
    return None


def _text(value: object) -> str | None:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case bytes():
            return value.decode(errors="replace")
        case float():
            return number_text(value)
        case int():
            return str(int(value))
        case datetime():
            return timestamp_text(value)
        case timedelta():
            return duration_text(value)
        case Type(name=name):
            return name
        case list():
            return f"[{', '.join(map(_member, value))}]"
        case dict():
            return "{" + ", ".join(sorted(f"{_member(key)}: {_member(item)}" for key, item in value.items())) + "}"
    return None


def _member(value: object) -> str:
    text = _text(value)
    if text is None:
        raise Fault("type", f"format() cannot write {type_name(value)} as %s")
    return text
