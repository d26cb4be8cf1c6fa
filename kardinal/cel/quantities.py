"""The functions of Kubernetes for quantities (`100m`, `1.5Gi`, `2e3`), which are computed exactly."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import total_ordering
from typing import ClassVar, Final

from kardinal.cel.errors import Fault
from kardinal.cel.overloads import Function

__all__ = ["QUANTITY_FUNCTIONS"]

_PATTERN: Final = re.compile(
    r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?", re.ASCII
)
_BINARY: Final = {f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")}
_DECIMAL: Final = {
    letter: Fraction(1000) ** power
    for letter, power in {"n": -3, "u": -2, "m": -1, "k": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}.items()
}
_INT_LIMIT: Final = 1 << 63
_EXPONENTS: Final = 1000
_LONGEST: Final = 64
"""The most characters of a quantity; Kubernetes keeps fewer digits than that."""


@total_ordering
@dataclass(frozen=True)
class Quantity:
    """An exact amount."""

    cel_type: ClassVar[str] = "kubernetes.Quantity"

    amount: Fraction

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    @property
    def is_integer(self) -> bool:
        return self.amount.denominator == 1 and -_INT_LIMIT <= self.amount < _INT_LIMIT


def _parsed(text: str) -> Quantity | None:
    match = _PATTERN.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    value = Fraction(match[1].rstrip("."))
    suffix = match[2] or ""
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        exponent = int(suffix[1:])
        return Quantity(value * Fraction(10) ** exponent) if abs(exponent) < _EXPONENTS else None
    return Quantity(value * (_BINARY.get(suffix) or _DECIMAL.get(suffix) or 1))


def _quantity(text: str) -> Quantity:
    found = _parsed(text)
    if found is None:
        raise Fault(
            "conversion",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        )
    return found


def _integer(quantity: Quantity) -> int:
    if not quantity.is_integer:
        raise Fault("conversion", "cannot convert value to integer")
    return int(quantity.amount)


def _sign(quantity: Quantity) -> int:
    return (quantity.amount > 0) - (quantity.amount < 0)


QUANTITY_FUNCTIONS: dict[str, Function] = {
    "quantity": Function({(str,): _quantity}),
    "isQuantity": Function({(str,): lambda text: _parsed(text) is not None}),
    "isInteger": Function({(Quantity,): lambda quantity: quantity.is_integer}),
    "asInteger": Function({(Quantity,): _integer}),
    "asApproximateFloat": Function({(Quantity,): lambda quantity: float(quantity.amount)}),
    "sign": Function({(Quantity,): _sign}),
    "add": Function(
        {
            (Quantity, Quantity): lambda one, other: Quantity(one.amount + other.amount),
            (Quantity, int): lambda one, other: Quantity(one.amount + other),
        }
    ),
    "sub": Function(
        {
            (Quantity, Quantity): lambda one, other: Quantity(one.amount - other.amount),
            (Quantity, int): lambda one, other: Quantity(one.amount - other),
        }
    ),
    "isLessThan": Function({(Quantity, Quantity): lambda one, other: one < other}),
    "isGreaterThan": Function({(Quantity, Quantity): lambda one, other: one > other}),
    "compareTo": Function({(Quantity, Quantity): lambda one, other: int(one > other) - int(one < other)}),
}
