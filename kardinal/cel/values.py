"""Values of the language and how they compare.

An expression works directly on decoded JSON: `dict`, `list`, `str`, `int`, `float`, `bool` and `None` are the
language's map, list, string, int, double, bool and null; `bytes`, `datetime` and `timedelta` are its bytes, timestamp
and duration, which JSON does not have, and `Uint` is its uint.
Data is not converted, so reading one field of a large object costs one lookup, and shared objects are not changed.

The trap is the equality of Python: `True == 1`, and `[1] == [True]`. Here, values of different types are unequal,
except that int, uint and double are compared as numbers.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kardinal.cel.budget import Budget
from kardinal.cel.errors import Fault

__all__ = [
    "INT_MAX",
    "INT_MIN",
    "NOTHING",
    "OMIT",
    "UINT_MAX",
    "Omitted",
    "Optional",
    "Type",
    "Uint",
    "duration_text",
    "equal",
    "has_key",
    "in_range",
    "parse_duration",
    "parse_timestamp",
    "timestamp_text",
    "to_json",
    "type_name",
]

INT_MIN: Final = -(2**63)
INT_MAX: Final = 2**63 - 1
UINT_MAX: Final = 2**64 - 1

_VALUE_STEPS = 10
_VALUE_MEMORY = 100
"""One value of a result, copied."""


@dataclass(frozen=True, slots=True)
class Optional:
    """The value of `a.?b`."""

    value: object
    present: bool = True


@dataclass(frozen=True, slots=True)
class Type:
    name: str


class Uint(int):
    """A number without a sign, such as `1u`, in 64 bits."""

    __slots__ = ()


class Omitted:
    """The result of an optional without a value: the field it was meant for is left out."""

    def __repr__(self) -> str:
        return "OMIT"


NOTHING: Final = Optional(None, present=False)
OMIT: Final = Omitted()

_TYPE_NAMES: dict[type, str] = {
    dict: "map",
    list: "list",
    str: "string",
    int: "int",
    float: "double",
    bool: "bool",
    type(None): "null_type",
    datetime: "timestamp",
    timedelta: "duration",
    Optional: "optional_type",
    Type: "type",
    Uint: "uint",
    bytes: "bytes",
}


def type_name(value: object) -> str:
    """Return the name of a type of the language; a class of a library has it as `cel_type`."""
    return _TYPE_NAMES.get(type(value)) or str(getattr(value, "cel_type", "unknown"))


def equal(left: object, right: object) -> bool:
    kind = type(left)
    if kind is not type(right):
        return _is_number(left) and _is_number(right) and left == right
    if kind is dict:
        assert isinstance(left, dict) and isinstance(right, dict)  # noqa: S101, PT018 - narrows for the type checker
        return len(left) == len(right) and all(has_key(right, key) and equal(left[key], right[key]) for key in left)
    if kind is list:
        assert isinstance(left, list) and isinstance(right, list)  # noqa: S101, PT018 - narrows for the type checker
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def has_key(container: dict[Any, object], key: object) -> bool:
    """Return whether a map has a key. Of 0 and 1, which Python takes for false and true, every key is looked at."""
    if key not in container:
        return False
    if type(key) is str or key not in (0, 1):
        return True
    truth = type(key) is bool
    return any(other == key and (type(other) is bool) is truth for other in container)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_LONGEST = timedelta(seconds=315_576_000_000)
"""The longest duration: 10,000 years."""

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)")
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?|\.\d+)(?:h|ms|m|us|µs|ns|s))+")
_DURATION_PART = re.compile(r"(?<![\d.])(\d++(?:\.\d*+)?|\.\d++)(h|ms|m|us|µs|ns|s)")
_MICROSECONDS = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1, "µs": 1, "ns": 0.001}


def parse_timestamp(text: str) -> datetime:
    """Return the moment of a text by RFC 3339; digits beyond microseconds are dropped."""
    if _TIMESTAMP.fullmatch(text):
        try:
            return datetime.fromisoformat(text.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise Fault("conversion", "timestamp() needs RFC 3339 text such as 2026-04-09T12:00:00Z")


def parse_duration(text: str) -> timedelta:
    match = _DURATION.fullmatch(text)
    if match is None and text != "0":
        raise Fault("conversion", "duration() needs text such as 1h30m")
    total = sum(float(amount) * _MICROSECONDS[unit] for amount, unit in _DURATION_PART.findall(text))
    try:
        span = timedelta(microseconds=round(total))
    except OverflowError:
        raise Fault("arithmetic", "the duration is out of range") from None
    return in_range(-span if text.startswith("-") else span)


def in_range(span: timedelta) -> timedelta:
    """Return a duration of at most 10,000 years; raises Fault."""
    if abs(span) > _LONGEST:
        raise Fault("arithmetic", "the duration is out of range")
    return span


def timestamp_text(moment: datetime) -> str:
    text = moment.astimezone(UTC).isoformat().replace("+00:00", "")
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "Z"


def duration_text(span: timedelta) -> str:
    """Return a duration in seconds as CEL writes it: `5400s`, `-0.25s`."""
    microseconds = abs(span) // timedelta(microseconds=1)
    whole, fraction = divmod(microseconds, 1_000_000)
    sign = "-" if span < timedelta(0) else ""
    return f"{sign}{whole}" + (f".{fraction:06}".rstrip("0") if fraction else "") + "s"


def to_json(value: object, budget: Budget) -> object:
    """Return a result as decoded JSON that shares no mutable value with the scope; raises Fault for other values."""
    if isinstance(value, Optional):
        return _json(value.value, budget) if value.present else OMIT
    return _json(value, budget)


def _json(value: object, budget: Budget) -> object:
    match value:
        case None | bool():
            return value
        case str():
            # Not copied, but whatever the result is written to holds it once for each place.
            budget.spend(0, len(value))
            return value
        case int():
            if INT_MIN <= value <= INT_MAX:
                return int(value)
            raise Fault("arithmetic", "the number does not fit into 64 bits")
        case float():
            if math.isfinite(value):
                return value
            raise Fault("unrepresentable", "the result is not a finite number")
        case dict():
            return _json_map(value, budget)
        case list():
            budget.spend(_VALUE_STEPS * len(value), _VALUE_MEMORY * len(value))
            return [_json(item, budget) for item in value if item is not NOTHING]
        case datetime():
            return timestamp_text(value)
        case timedelta():
            return duration_text(value)
        case Optional(value=inner, present=True):
            return _json(inner, budget)
        case _:
            raise Fault("unrepresentable", f"a value of type {type_name(value)} cannot be a result")


def _json_map(value: dict[object, object], budget: Budget) -> dict[str, object]:
    budget.spend(_VALUE_STEPS * len(value), _VALUE_MEMORY * len(value))
    if not all(isinstance(key, str) for key in value):
        raise Fault("unrepresentable", "the keys of a map must be strings")
    return {str(key): _json(item, budget) for key, item in value.items() if item is not NOTHING}
