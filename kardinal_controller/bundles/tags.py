"""The questions of the reconciler of Bundles to those that look up tags.

They speak to registries, which this package does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from kardinal.api import Bundle
from kardinal.api.bundle import ResolvedImage
from kardinal.objects import Key
from kardinal.runtime import Source

__all__ = ["Check", "Tags"]


@dataclass(frozen=True, slots=True)
class Check:
    """The tags of a Bundle as they are at a moment; `environments` are those that it is enough for."""

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
        """Return what was found for a Bundle; None before it was looked for."""
        ...

    def ask(self, key: Key) -> None:
        """Have the tags of a Bundle that starts looked up."""
        ...

    def check(self, key: Key, environments: Sequence[str]) -> timedelta | None:
        """Have the tags of a Bundle looked up again before environments start; returns when to ask again, if so."""
        ...

    def checked(self, bundle: Bundle) -> Check | None:
        """Return what was found when they were looked up again, until the status has it."""
        ...

    def forget(self, key: Key) -> None:
        """Drop what is kept of a Bundle that is gone."""
        ...
