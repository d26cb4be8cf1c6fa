"""The library of an environment: functions by name, and macros by name and number of arguments.

Gates and graphs share the standard library; the rules of a CRD have what a Kubernetes API server adds to it, without
prices, since Kubernetes refuses a rule by an estimate of its cost when the CRD is written. A library is compared by
identity: programs are cached by text and library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kardinal.cel.budget import STANDARD_LIMITS, Limits
from kardinal.cel.functions import FUNCTIONS
from kardinal.cel.overloads import Function
from kardinal.cel.prices import PRICES, Price

__all__ = ["STANDARD", "Library"]

_ONE_VARIABLE = frozenset({2})


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """The functions and macros of one dialect of CEL, with their prices and limits.

    `macros`: name -> the numbers of arguments that the macro takes.

    `checked`: expressions are checked against types before they are evaluated, so whether a call exists is not asked
    while they are read.
    """

    functions: Mapping[str, Function]
    macros: Mapping[str, frozenset[int]]
    checked: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)
    limits: Limits = STANDARD_LIMITS


STANDARD = Library(
    FUNCTIONS,
    {**dict.fromkeys(("all", "exists", "exists_one", "filter"), _ONE_VARIABLE), "map": frozenset({2, 3})},
    prices=PRICES,
)
