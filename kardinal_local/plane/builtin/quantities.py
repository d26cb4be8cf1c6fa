"""Parse amounts such as `100m`, `1.5Gi` or `2e3`, and write them in their canonical form.

A quantity is a number with a suffix, and each has a canonical spelling: no fraction, the largest suffix that leaves a
whole number. Clients compare what they sent with what they get, so a server that kept `1000m` would differ from
one that answers `1`. Nothing smaller than a nano is kept; it is rounded away from zero. So a quantity is a whole number
of nanos.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["QuantityError", "canonical", "parse"]

_SHAPE: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL_NAMES: Final = {exponent: name for name, exponent in _DECIMAL.items()}
_BINARY_NAMES: Final = {exponent: name for name, exponent in _BINARY.items()} | {0: ""}
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)")
_DIGITS: Final = 9
_UNIT: Final = 10**_DIGITS


class QuantityError(ValueError):
    """A text that is no quantity, in the words of the real server."""


def parse(text: str) -> int:
    """What a quantity stands for, in nanos."""
    return _parsed(text.strip())[0]


@lru_cache(maxsize=512)
def canonical(text: str) -> str:
    """The quantity in its canonical spelling."""
    nanos, form = _parsed(text.strip())
    sign, whole = "-" if nanos < 0 else "", abs(nanos)
    if not whole:
        return "0"
    if form == "binary" and whole >= 1024 * _UNIT:
        return sign + _binary(-(-whole // _UNIT))
    exponent = -9
    while whole % 1000 == 0:
        whole, exponent = whole // 1000, exponent + 3
    if form == "exponent" or exponent not in _DECIMAL_NAMES:
        return f"{sign}{whole}e{exponent}" if exponent else f"{sign}{whole}"
    return f"{sign}{whole}{_DECIMAL_NAMES[exponent]}"


def _binary(whole: int) -> str:
    exponent = 0
    while whole % 1024 == 0 and exponent + 1 in _BINARY_NAMES:
        whole, exponent = whole // 1024, exponent + 1
    return f"{whole}{_BINARY_NAMES[exponent]}"


def _parsed(text: str) -> tuple[int, str]:
    shape = _SHAPE.fullmatch(text)
    if not text or shape is None:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    sign, whole, fraction, suffix = shape[1], shape[2], shape[3] or "", shape[4]
    if not whole and not fraction:
        raise QuantityError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    form, factor, power = _scale(suffix)
    return _nanos(int(f"{sign}{whole}{fraction}") * factor, power - len(fraction)), form


def _scale(suffix: str) -> tuple[str, int, int]:
    """The form that a suffix stands for, and by what it multiplies: a factor, and a power of ten."""
    if suffix in _DECIMAL:
        return "decimal", 1, _DECIMAL[suffix]
    if suffix in _BINARY:
        return "binary", 1024 ** _BINARY[suffix], 0
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or len(exponent[1]) > 3:
        raise QuantityError("unable to parse quantity's suffix")
    return "exponent", 1, int(exponent[1])


def _nanos(number: int, power: int) -> int:
    """A number times a power of ten, rounded away from zero."""
    scale: int = 10 ** abs(power + _DIGITS)
    if power >= -_DIGITS:
        return number * scale
    return -(-number // scale) if number > 0 else number // scale
