"""The questions of the reconciler of Bundles to those that look up tags.

They speak to registries, which this package does not.
"""

from __future__ import annotations

from typing import Protocol

from kardinal.api import Bundle
from kardinal.api.bundle import ResolvedImage
from kardinal.objects import Key
from kardinal.runtime import Source

__all__ = ["Tags"]


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
        """Have the tags of a Bundle looked up."""
        ...

    def forget(self, key: Key) -> None:
        """Drop what is kept of a Bundle that is gone."""
        ...
