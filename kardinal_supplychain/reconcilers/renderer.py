"""Render templates that are written for ytt."""

from __future__ import annotations

from typing import Protocol

from kardinal.objects import JsonObject
from kardinal_supplychain.realize.stamp import StampError

__all__ = ["MissingYtt", "YttRenderer"]


class YttRenderer(Protocol):
    """Render with ytt; at most a few at once, in turns of the namespaces of the owners."""

    async def render(self, template: str, values: JsonObject, *, namespace: str) -> JsonObject:
        """Return the first document of a template, rendered with data values. Raises `StampError`."""
        ...


class MissingYtt:
    """Implements `YttRenderer` where ytt is not installed."""

    async def render(self, template: str, values: JsonObject, *, namespace: str) -> JsonObject:
        raise StampError("ytt is not installed", remedy="Install it, or pass its path with --ytt")
