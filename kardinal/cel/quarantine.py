"""Expressions that overran their budget on some data, and what came of it.

The same expression on the same data overruns again, so it is not evaluated until one of them has changed. An entry
belongs to a place (one gate, one node of a Graph) and never to a text: another team's gate may say the same about
smaller data. Nothing is lost with the entries but the steps to find out again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

__all__ = ["Quarantine"]

_PLACES = 10_000

Outcome = TypeVar("Outcome")


class Quarantine(Generic[Outcome]):
    """The outcomes of the latest places; the version of a place is whatever changes with its expression or its data."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, tuple[object, Outcome]] = OrderedDict()

    def __contains__(self, place: Hashable) -> bool:
        return place in self._held

    def held(self, place: Hashable, version: object) -> Outcome | None:
        """Return the outcome that stands, or None when the expression is to be evaluated."""
        known, outcome = self._held.get(place, (None, None))
        return outcome if known == version else None

    def hold(self, place: Hashable, version: object, outcome: Outcome) -> None:
        """Let `outcome` stand for as long as the version of the place is this one."""
        self._held[place] = version, outcome
        self._held.move_to_end(place)
        if len(self._held) > _PLACES:
            self._held.popitem(last=False)
