"""The bounds of a JSON document of others."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["JsonLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLimits:
    """The limits of a document; a document beyond one of them is not decoded.

    `size`: bytes. `depth`: lists and objects inside each other; `[[1]]` has 2. `containers`: lists and objects.
    `pieces`: strings and keys, commas, lists and objects, which bound the number of values; `{"a": [1, 2]}` has 4.
    """

    size: int
    depth: int = 64
    containers: int = 20_000
    pieces: int = 200_000

    @property
    def structure(self) -> str:
        """Return the limits of nesting and number of values as text."""
        return f"{self.depth} levels, {self.containers:,} lists and objects, {self.pieces:,} values"
