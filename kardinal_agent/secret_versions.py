"""The versions of the Secrets that were read, and who is told that one has changed.

Agents have the right to get Secrets by their names, and none to list or watch them. So a change is noticed when the
Secret is read the next time, which is when a promotion, or the poll of one that waits for its merge, needs it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kardinal.objects import JsonObject, Key

__all__ = ["SecretVersions"]

_KEPT: Final = 4_096
"""Secrets whose version is known; the one that was read least recently is forgotten."""


class SecretVersions:
    """Remembers versions, never contents. Keys have the namespace of the control plane that a Secret is read for."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, str] = OrderedDict()
        self._callbacks: list[Callable[[Key], None]] = []

    def subscribe(self, callback: Callable[[Key], None]) -> None:
        """Call back for every Secret that is read and has changed since it was read before."""
        self._callbacks.append(callback)

    def note(self, key: Key, secret: JsonObject) -> None:
        """Take note of a Secret that was read."""
        version = secret["metadata"].get("resourceVersion", "")
        before = self._known.pop(key, version)
        self._known[key] = version
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        if before != version:
            for callback in self._callbacks:
                callback(key)
