"""The function library: operators, conversions and optionals, with the tables of the modules beside it.

The names and their meaning are those of cel-go with its extensions, of Kubernetes (`quantity`, `semver`, `find`) and of
kro (`json`, `merge`). `docs/cel.md` lists them.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.cel.collections import COLLECTION_FUNCTIONS
from kardinal.cel.encodings import ENCODING_FUNCTIONS
from kardinal.cel.errors import Fault
from kardinal.cel.formatting import number_text
from kardinal.cel.moments import MOMENT_FUNCTIONS, add, between, subtract
from kardinal.cel.numbers import NUMBER_FUNCTIONS, int64, uint64
from kardinal.cel.overloads import Function, merged
from kardinal.cel.quantities import QUANTITY_FUNCTIONS
from kardinal.cel.text import TEXT_FUNCTIONS, TEXT_LIMIT, concatenate, join_bytes
from kardinal.cel.values import (
    INT_MIN,
    NOTHING,
    Optional,
    Type,
    Uint,
    duration_text,
    equal,
    has_key,
    timestamp_text,
    type_name,
)
from kardinal.cel.versions import VERSION_FUNCTIONS
from kardinal.cel.windows import WINDOW_FUNCTIONS

__all__ = ["CLOCK_FUNCTIONS", "FUNCTIONS", "TYPE_NAMES"]

CLOCK_FUNCTIONS = frozenset({"now", "time.now"})
"""Read the evaluation's own instant, so evaluation answers them itself."""

TYPE_NAMES = frozenset(
    [
        *("bool", "bytes", "double", "duration", "int", "list", "map", "null_type", "optional_type"),
        *("string", "timestamp", "type", "uint"),
    ]
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER = re.compile(r"-?\d{1,19}", re.ASCII)
_UNSIGNED = re.compile(r"\d{1,20}", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_UNCOUNTABLE = frozenset({"NaN", "Infinity", "-Infinity", "Inf", "-Inf", "+Inf"})
_TRUTH = dict.fromkeys(("1", "t", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "false", "FALSE", "False"), False
)


def _exact(compute: Callable[[int, int], int]) -> dict[tuple[type, ...], Callable[[int, int], int]]:
    """Return the overloads of an operation for int and uint."""
    return {
        (int, int): lambda left, right: int64(compute(left, right)),
        (Uint, Uint): lambda left, right: uint64(compute(int(left), int(right))),
    }


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise Fault("arithmetic", "division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise Fault("arithmetic", "modulus by zero")
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


def _divide_double(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _lists(left: list[object], right: list[object]) -> list[object]:
    if len(left) + len(right) > TEXT_LIMIT:
        raise Fault("limit", "the list is too long")
    return left + right


def _ordering(compare: Callable[[Any, Any], bool]) -> Function:
    whole = [(left, right) for left in (int, Uint) for right in (int, Uint)]
    alike = [(kind, kind) for kind in (float, str, bool, bytes, datetime, timedelta)]
    # A whole number is compared with a double as one, as all implementations do.
    mixed = [pair for kind in (int, Uint) for pair in ((kind, float), (float, kind))]
    return Function(
        dict.fromkeys([*whole, *alike], compare)
        | dict.fromkeys(mixed, lambda left, right: compare(float(left), float(right)))
    )


def _contained(item: object, container: object) -> bool:
    if isinstance(container, list):
        return any(equal(item, other) for other in container)
    if isinstance(container, dict):
        return isinstance(item, (str, int, float)) and has_key(container, item)
    raise Fault("type", f"`in` needs a list or a map on its right, not {type_name(container)}")


def _to_int(value: float) -> int:
    if not math.isfinite(value):
        raise Fault("conversion", "int() needs a finite number")
    whole = math.trunc(value)
    if whole == INT_MIN:
        # Numbers below it are rounded to it.
        raise Fault("arithmetic", "the number does not fit into 64 bits")
    return int64(whole)


def _to_uint(value: float) -> Uint:
    if not math.isfinite(value):
        raise Fault("conversion", "uint() needs a finite number")
    return uint64(math.trunc(value))


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Fault("conversion", "int() needs the digits of a whole number")
    return int64(int(text))


def _parse_uint(text: str) -> Uint:
    if not _UNSIGNED.fullmatch(text):
        raise Fault("conversion", "uint() needs the digits of a whole number without a sign")
    return uint64(int(text))


def _parse_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Fault("conversion", "string() needs bytes of UTF-8") from None


def _parse_double(text: str) -> float:
    if text in _UNCOUNTABLE:
        return float(text)
    if not _NUMBER.fullmatch(text):
        raise Fault("conversion", "double() needs the digits of a number")
    return float(text)


def _parse_bool(text: str) -> bool:
    if text not in _TRUTH:
        raise Fault("conversion", "bool() needs `true` or `false`")
    return _TRUTH[text]


def _non_zero(value: object) -> Optional:
    return Optional(value) if value else NOTHING


def _value(optional: Optional) -> object:
    if not optional.present:
        raise Fault("type", "value() of an optional that has none")
    return optional.value


def _or_value(optional: object, default: object) -> object:
    if not isinstance(optional, Optional):
        raise Fault("type", f"orValue() needs an optional such as `a.?b`, not {type_name(optional)}")
    return optional.value if optional.present else default


def _same(value: object) -> object:
    return value


_CORE: dict[str, Function] = {
    **dict.fromkeys(CLOCK_FUNCTIONS, Function(generic={0: lambda: None})),
    "+": Function(
        {
            **_exact(operator.add),
            (float, float): operator.add,
            (str, str): concatenate,
            (bytes, bytes): join_bytes,
            (list, list): _lists,
            (datetime, timedelta): add,
            (timedelta, datetime): add,
            (timedelta, timedelta): add,
        }
    ),
    "-": Function(
        {
            (int,): lambda value: int64(-value),
            (float,): operator.neg,
            (timedelta,): operator.neg,
            **_exact(operator.sub),
            (float, float): operator.sub,
            (datetime, datetime): operator.sub,
            (datetime, timedelta): subtract,
            (timedelta, timedelta): between,
        }
    ),
    "*": Function({**_exact(operator.mul), (float, float): operator.mul}),
    "/": Function({**_exact(_divide), (float, float): _divide_double}),
    "%": Function(_exact(_remainder)),
    "!": Function({(bool,): operator.not_}),
    "==": Function(generic={2: equal}),
    "!=": Function(generic={2: lambda left, right: not equal(left, right)}),
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "in": Function(generic={2: _contained}),
    "size": Function({(str,): len, (bytes,): len, (list,): len, (dict,): len}),
    "type": Function(generic={1: lambda value: Type(type_name(value))}),
    "dyn": Function(generic={1: _same}),
    "int": Function(
        {
            (int,): _same,
            (Uint,): lambda value: int64(int(value)),
            (float,): _to_int,
            (str,): _parse_int,
            (datetime,): lambda moment: (moment - _EPOCH) // timedelta(seconds=1),
        }
    ),
    "uint": Function({(int,): uint64, (Uint,): _same, (float,): _to_uint, (str,): _parse_uint}),
    "double": Function({(int,): float, (Uint,): float, (float,): _same, (str,): _parse_double}),
    "bytes": Function({(bytes,): _same, (str,): str.encode}),
    "bool": Function({(bool,): _same, (str,): _parse_bool}),
    "string": Function(
        {
            (str,): _same,
            (int,): str,
            (Uint,): str,
            (float,): number_text,
            (bytes,): _parse_text,
            (bool,): lambda value: "true" if value else "false",
            (datetime,): timestamp_text,
            (timedelta,): duration_text,
        }
    ),
    "optional.of": Function(generic={1: Optional}),
    "optional.none": Function(generic={0: lambda: NOTHING}),
    "orValue": Function(generic={2: _or_value}),
    "hasValue": Function({(Optional,): lambda optional: optional.present}),
    "value": Function({(Optional,): _value}),
    "or": Function({(Optional, Optional): lambda one, other: one if one.present else other}),
    "optional.ofNonZeroValue": Function(generic={1: _non_zero}),
}

FUNCTIONS: dict[str, Function] = merged(
    _CORE,
    TEXT_FUNCTIONS,
    MOMENT_FUNCTIONS,
    COLLECTION_FUNCTIONS,
    NUMBER_FUNCTIONS,
    ENCODING_FUNCTIONS,
    QUANTITY_FUNCTIONS,
    VERSION_FUNCTIONS,
    WINDOW_FUNCTIONS,
)
