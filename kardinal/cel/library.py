"""The library of an environment: functions by name, and macros by name and number of arguments.

Gates and graphs share the standard library. The rules of a CRD have most of it and what a Kubernetes API server adds,
without prices: Kubernetes refuses a rule by an estimate of its cost when the CRD is written. A library is compared by
identity, since programs are cached by text and library.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kardinal.cel.budget import STANDARD_LIMITS, Limits
from kardinal.cel.functions import FUNCTIONS
from kardinal.cel.overloads import Function
from kardinal.cel.prices import PRICES, Price

__all__ = ["MACROS", "STANDARD", "Library"]

MACROS: Final = {
    **dict.fromkeys(("all", "exists", "exists_one", "map"), frozenset({2, 3})),
    "existsOne": frozenset({3}),
    **dict.fromkeys(("filter", "sortBy", "optMap", "optFlatMap"), frozenset({2})),
    **dict.fromkeys(("transformList", "transformMap", "transformMapEntry"), frozenset({3, 4})),
}
"""The macros of all dialects, with the numbers of their arguments: variables, then expressions."""


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


STANDARD = Library(FUNCTIONS, {**MACROS, "cel.bind": frozenset({3})}, prices=PRICES)
