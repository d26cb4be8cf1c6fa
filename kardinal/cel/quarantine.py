"""Expressions that exceeded their budget on some data, with their outcomes.

The same expression on the same data would exceed its budget again, so it is not evaluated until one of the two changes.
An entry belongs to a place (one gate, one node of a Graph) and never to a text, because the gate of another team may
have the same text and smaller data. Entries may be dropped at any time: the expression is then evaluated once more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Quarantine"]

_PLACES = 10_000

Outcome = TypeVar("Outcome")


class Quarantine(Generic[Outcome]):
    """The outcomes of the most recent places. The version of a place changes with its expression and its data."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, tuple[object, Outcome]] = OrderedDict()

    def __contains__(self, place: Hashable) -> bool:
        return place in self._held

    def held(self, place: Hashable, version: object) -> Outcome | None:
        """Return the kept outcome, or None when the expression has to be evaluated."""
        known, outcome = self._held.get(place, (None, None))
        return outcome if known == version else None

    def hold(self, place: Hashable, version: object, outcome: Outcome) -> None:
        """Keep `outcome` for this version of the place."""
        self._held[place] = version, outcome
        self._held.move_to_end(place)
        if len(self._held) > _PLACES:
            self._held.popitem(last=False)
