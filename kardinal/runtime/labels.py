"""Limit the number of metric label values that users choose.

Every combination of label values is a time series, here and in the server that scrapes it, and exists as long as the
process. Users choose the names of Pipelines, environments and gates, so only the first names become values of their
own, with a limit per namespace, so that no namespace can use all of them. All further names are counted together as
`other`.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["OTHER", "BoundedLabels"]

OTHER = "other"
MAX_TOTAL = 1000
MAX_OF_NAMESPACE = 50
MAX_LENGTH = 253
"""The maximum length of a value, which is that of a name; an annotation may be longer."""


class BoundedLabels:
    """The combinations of values that one metric has so far."""

    def __init__(self) -> None:
        self._known: set[tuple[str, ...]] = set()
        self._of_namespace: Counter[str] = Counter()

    def admit(self, *values: str, namespace: str) -> tuple[str, ...]:
        """Return the values, or `other` for each of them if the limit of the namespace or of all values is reached."""
        if values not in self._known:
            full = len(self._known) >= MAX_TOTAL or self._of_namespace[namespace] >= MAX_OF_NAMESPACE
            if full or max(map(len, values)) > MAX_LENGTH:
                return (OTHER,) * len(values)
            self._known.add(values)
            self._of_namespace[namespace] += 1
        return values
