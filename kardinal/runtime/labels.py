"""Values of metric labels that users choose, in a bounded number.

Every combination of label values is a time series, here and in whatever scrapes it, and lives as long as the process.
Names of Pipelines, environments and gates are free to choose, so only the first of them become values of their own: a
share for each namespace, so that one cannot take all. The others are counted together under `other`.
"""

from __future__ import annotations

from collections import Counter

__all__ = ["OTHER", "BoundedLabels"]

OTHER = "other"
MAX_TOTAL = 1000
MAX_OF_NAMESPACE = 50
MAX_LENGTH = 253
"""Characters of a value, as many as a name may have; an annotation may have any number."""


class BoundedLabels:
    """The combinations of chosen values that one metric has so far."""

    def __init__(self) -> None:
        self._known: set[tuple[str, ...]] = set()
        self._of_namespace: Counter[str] = Counter()

    def admit(self, *values: str, namespace: str) -> tuple[str, ...]:
        """Return the values, or `other` for each where the namespace, or all together, have too many of them."""
        if values not in self._known:
            full = len(self._known) >= MAX_TOTAL or self._of_namespace[namespace] >= MAX_OF_NAMESPACE
            if full or max(map(len, values)) > MAX_LENGTH:
                return (OTHER,) * len(values)
            self._known.add(values)
            self._of_namespace[namespace] += 1
        return values
