"""The interface by which the reconciler of Bundles has the digests of tags looked up.

It is implemented in `kardinal_controller.registries`, because this package sends no requests to registries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from kardinal.objects import Key
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import ResolvedImage
from kardinal.runtime import Source

__all__ = ["Check", "Tags"]


@dataclass(frozen=True, slots=True)
class Check:
    """The tags of a Bundle at a moment; the `environments` for which this look-up counts may start with it."""

    artifacts: tuple[ResolvedImage, ...]
    environments: tuple[str, ...]
    at: datetime


class Tags(Protocol):
    """Looks up which digests the tags of a Bundle have."""

    @property
    def changes(self) -> Source:
        """Return the source of the Bundles whose tags were looked up."""
        ...

    def known(self, bundle: Bundle) -> tuple[ResolvedImage, ...] | None:
        """Return the digests that were found for the tags of a Bundle; None before the first look-up has ended."""
        ...

    def ask(self, key: Key) -> None:
        """Begin to look up the tags of a Bundle that is about to start."""
        ...

    def check(self, key: Key, environments: Sequence[str]) -> timedelta | None:
        """Begin to look up the tags of a Bundle again before environments start; return when to call again, or None."""
        ...

    def checked(self, bundle: Bundle) -> Check | None:
        """Return the result of the last repeated look-up, until the status has it; otherwise None."""
        ...
