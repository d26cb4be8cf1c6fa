"""The decoded Bundles of the Pipelines that changed last.

A row and a document of a Pipeline read all of its Bundles, and most changes are of one. Decoding is most of their cost:
5 of 8 ms with 20 Bundles. A decoded Bundle takes some 30 KiB, several times as much as the stored one, so not all stay.
"""

from __future__ import annotations

from kardinal.objects import JsonObject, Key, key_of
from kardinal.promotion.api import Bundle

__all__ = ["DecodedBundles"]

MOST = 1_000
"""The number of Bundles that are kept, in some 30 MiB. It is the highest `historyLimit` of a Pipeline."""


class DecodedBundles:
    """Decode stored Bundles, each once as long as it does not change; those that were asked for last are kept."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: dict[Key, tuple[tuple[str, str], Bundle]] = {}
        """By name, the one that was asked for last at the end, with uid and resourceVersion."""

    def decode(self, stored: JsonObject) -> Bundle:
        """Return a stored Bundle as a model."""
        key = key_of(stored)
        version = (stored["metadata"]["uid"], stored["metadata"]["resourceVersion"])
        kept = self._kept.pop(key, None)
        if kept is None or kept[0] != version:
            kept = (version, Bundle.model_validate(stored))
        self._kept[key] = kept
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return kept[1]
