"""The function library: operators, conversions, optionals, and the tables of `text` and `moments`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from kardinal.cel.errors import Fault
from kardinal.cel.literals import INT_MAX, INT_MIN
from kardinal.cel.moments import MOMENT_FUNCTIONS, add, between, subtract
from kardinal.cel.overloads import Function
from kardinal.cel.text import TEXT_FUNCTIONS, TEXT_LIMIT, concatenate
from kardinal.cel.values import NOTHING, Optional, Type, duration_text, equal, timestamp_text, type_name

__all__ = ["CLOCK_FUNCTIONS", "FUNCTIONS", "TYPE_NAMES"]

CLOCK_FUNCTIONS = frozenset({"now", "time.now"})
"""Read the evaluation's own instant, so evaluation answers them itself."""

TYPE_NAMES = frozenset(
    {"bool", "double", "duration", "dyn", "int", "list", "map", "null_type", "string", "timestamp", "type"}
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_INTEGER = re.compile(r"-?\d{1,19}")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_TRUTH = dict.fromkeys(("1", "t", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "false", "FALSE", "False"), False
)


def _int64(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Fault("arithmetic", "the number does not fit into 64 bits")


def _exact(compute: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: _int64(compute(left, right))


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise Fault("arithmetic", "division by zero")
    quotient = abs(left) // abs(right)
    return _int64(quotient if (left < 0) == (right < 0) else -quotient)


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise Fault("arithmetic", "modulus by zero")
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _divide_double(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _lists(left: list[object], right: list[object]) -> list[object]:
    if len(left) + len(right) > TEXT_LIMIT:
        raise Fault("limit", "the list is too long")
    return left + right


def _ordering(compare: Callable[[Any, Any], bool]) -> Function:
    numbers = [(left, right) for left in (int, float) for right in (int, float)]
    alike = [(kind, kind) for kind in (str, bool, datetime, timedelta)]
    return Function(dict.fromkeys([*numbers, *alike], compare))


def _contained(item: object, container: object) -> bool:
    if isinstance(container, list):
        return any(equal(item, other) for other in container)
    if isinstance(container, dict):
        return isinstance(item, (str, int)) and not isinstance(item, bool) and item in container
    raise Fault("type", f"`in` needs a list or a map on its right, not {type_name(container)}")


def _to_int(value: float) -> int:
    if not math.isfinite(value):
        raise Fault("conversion", "int() needs a finite number")
    return _int64(math.trunc(value))


def _parse_int(text: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise Fault("conversion", "int() needs the digits of a whole number")
    return _int64(int(text))


def _parse_double(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise Fault("conversion", "double() needs the digits of a number")
    return float(text)


def _parse_bool(text: str) -> bool:
    if text not in _TRUTH:
        raise Fault("conversion", "bool() needs `true` or `false`")
    return _TRUTH[text]


def _double_text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


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


FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(CLOCK_FUNCTIONS, Function(generic={0: lambda: None})),
    **TEXT_FUNCTIONS,
    **MOMENT_FUNCTIONS,
    "+": Function(
        {
            (int, int): _exact(operator.add),
            (float, float): operator.add,
            (str, str): concatenate,
            (list, list): _lists,
            (datetime, timedelta): add,
            (timedelta, datetime): add,
            (timedelta, timedelta): add,
        }
    ),
    "-": Function(
        {
            (int,): lambda value: _int64(-value),
            (float,): operator.neg,
            (timedelta,): operator.neg,
            (int, int): _exact(operator.sub),
            (float, float): operator.sub,
            (datetime, datetime): operator.sub,
            (datetime, timedelta): subtract,
            (timedelta, timedelta): between,
        }
    ),
    "*": Function({(int, int): _exact(operator.mul), (float, float): operator.mul}),
    "/": Function({(int, int): _divide, (float, float): _divide_double}),
    "%": Function({(int, int): _remainder}),
    "!": Function({(bool,): operator.not_}),
    "==": Function(generic={2: equal}),
    "!=": Function(generic={2: lambda left, right: not equal(left, right)}),
    "<": _ordering(operator.lt),
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
    "in": Function(generic={2: _contained}),
    "size": Function({(str,): len, (list,): len, (dict,): len}),
    "type": Function(generic={1: lambda value: Type(type_name(value))}),
    "dyn": Function(generic={1: _same}),
    "int": Function(
        {
            (int,): _same,
            (float,): _to_int,
            (str,): _parse_int,
            (datetime,): lambda moment: (moment - _EPOCH) // timedelta(seconds=1),
        }
    ),
    "double": Function({(int,): float, (float,): _same, (str,): _parse_double}),
    "bool": Function({(bool,): _same, (str,): _parse_bool}),
    "string": Function(
        {
            (str,): _same,
            (int,): str,
            (float,): _double_text,
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
}
