"""Functions on numbers, under the names of cel-go's math extension."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function
from kardinal.cel.values import INT_MAX, INT_MIN, UINT_MAX, Uint, type_name

__all__ = ["NUMBER_FUNCTIONS", "int64", "uint64"]

_NUMBERS: Final = (int, float, Uint)


def int64(value: int) -> int:
    """Return a number of 64 bits; raises Fault."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise Fault("arithmetic", "the number does not fit into 64 bits")


def uint64(value: int) -> Uint:
    """Return a number of 64 bits without a sign; raises Fault."""
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise Fault("arithmetic", "the number does not fit into 64 bits without a sign")


def _extreme(choose: Callable[[Any], Any], name: str) -> Function:
    def chosen(*arguments: object) -> object:
        numbers = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], list) else arguments
        if not numbers:
            raise Fault("type", f"{name}() of an empty list")
        for number in numbers:
            if type(number) not in _NUMBERS:
                raise Fault("type", f"{name}() needs numbers, not {type_name(number)}")
        return choose(numbers)

    return Function(variadic=chosen)


def _half_away(value: float) -> float:
    """Return the nearest whole number; halves are rounded away from zero."""
    if not math.isfinite(value) or value.is_integer():
        return value
    nearest = math.floor(abs(value))
    return math.copysign(nearest + 1 if abs(value) - nearest >= 0.5 else nearest, value)


def _whole(compute: Callable[[float], float]) -> Function:
    """Return a function whose result is a whole number as a double; infinity and NaN stay what they are."""

    def computed(value: float) -> float:
        return math.copysign(compute(value), value) if math.isfinite(value) else value

    return Function({(float,): computed})


def _sign(value: float) -> float:
    return value if value == 0 or math.isnan(value) else math.copysign(1.0, value)


def _root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _bits(compute: Callable[[int, int], int]) -> Function:
    return Function({(int, int): compute, (Uint, Uint): lambda left, right: Uint(compute(int(left), int(right)))})


def _signed(bits: int) -> int:
    return bits - (1 << 64) if bits > INT_MAX else bits


def _shift(bits: Callable[[int, int], int]) -> Function:
    """Return a function that shifts the 64 bits of a number; bits that leave them are lost, and zeros come in."""

    def shifted(value: int, count: int) -> int:
        if count < 0:
            raise Fault("arithmetic", "a number cannot be shifted by a negative count")
        return bits(value & UINT_MAX, count) & UINT_MAX if count < 64 else 0

    return Function(
        {
            (int, int): lambda value, count: _signed(shifted(value, count)),
            (Uint, int): lambda value, count: Uint(shifted(value, count)),
        }
    )


NUMBER_FUNCTIONS: dict[str, Function] = {
    "math.greatest": _extreme(max, "math.greatest"),
    "math.least": _extreme(min, "math.least"),
    "math.ceil": _whole(math.ceil),
    "math.floor": _whole(math.floor),
    "math.round": _whole(_half_away),
    "math.trunc": _whole(math.trunc),
    "math.abs": Function({(int,): lambda value: int64(abs(value)), (float,): abs, (Uint,): lambda value: value}),
    "math.sign": Function(
        {
            (int,): lambda value: (value > 0) - (value < 0),
            (float,): _sign,
            (Uint,): lambda value: Uint(value > 0),
        }
    ),
    "math.sqrt": Function(dict.fromkeys([(int,), (float,), (Uint,)], _root)),
    "math.isNaN": Function({(float,): math.isnan}),
    "math.isInf": Function({(float,): math.isinf}),
    "math.isFinite": Function({(float,): math.isfinite}),
    "math.bitAnd": _bits(lambda left, right: left & right),
    "math.bitOr": _bits(lambda left, right: left | right),
    "math.bitXor": _bits(lambda left, right: left ^ right),
    "math.bitNot": Function({(int,): lambda value: ~value, (Uint,): lambda value: Uint(~value & UINT_MAX)}),
    "math.bitShiftLeft": _shift(lambda value, count: value << count),
    "math.bitShiftRight": _shift(lambda value, count: value >> count),
}
