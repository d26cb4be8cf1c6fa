"""Remember Secrets that were read: their versions, and the contents of those that their namespace takes along.

Agents may get Secrets by name, but not list or watch them. A change is therefore noticed at the next read, which
happens when a promotion, or the poll of a promotion that waits for its merge, needs the Secret.

A namespace that is being deleted takes its Secrets and the Role that lets them be read along at once, while its
promotions wait for their proposals to be withdrawn. For that alone, and as long as the namespace is being deleted, the
content that was read last is used.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kardinal.objects import JsonObject, Key
from kardinal.runtime.finalizers import is_being_deleted

__all__ = ["KeptSecrets", "SecretVersions"]

_KEPT: Final = 4_096
"""The most Secrets whose version is known; the one that was read least recently is forgotten."""


class SecretVersions:
    """Remembers the versions of Secrets, never contents; their keys have the namespace of the control plane."""

    def __init__(self) -> None:
        self._known: OrderedDict[Key, str] = OrderedDict()
        self._callbacks: list[Callable[[Key], None]] = []

    def subscribe(self, callback: Callable[[Key], None]) -> None:
        """Call `callback` with every Secret whose version differs from that of the read before."""
        self._callbacks.append(callback)

    def note(self, key: Key, secret: JsonObject) -> None:
        """Note the version of a Secret that was read."""
        version = secret["metadata"].get("resourceVersion", "")
        before = self._known.pop(key, version)
        self._known[key] = version
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        if before != version:
            for callback in self._callbacks:
                callback(key)


class KeptSecrets:
    """Remembers Secrets of Git; `namespace` finds a Namespace of the agent's own cluster."""

    def __init__(self, namespace: Callable[[str], JsonObject | None]) -> None:
        self._namespace = namespace
        self._known: dict[Key, JsonObject] = {}

    def keep(self, key: Key, secret: JsonObject) -> None:
        """Remember a Secret that was read for a promotion; drop the Secrets of deleted namespaces."""
        gone = {known for known in self._known if self._namespace(known.namespace) is None}
        for known in gone:
            del self._known[known]
        self._known[key] = secret

    def forget(self, key: Key) -> None:
        """Drop a Secret that was deleted without its namespace."""
        if not self.is_leaving(key.namespace):
            self._known.pop(key, None)

    def find(self, key: Key) -> JsonObject | None:
        """Return a Secret that was deleted with its namespace; None unless the namespace is being deleted."""
        return self._known.get(key) if self.is_leaving(key.namespace) else None

    def is_leaving(self, namespace: str) -> bool:
        """Return whether a namespace is being deleted, so that a deleted Secret does not come back."""
        found = self._namespace(namespace)
        return found is not None and is_being_deleted(found)
