"""The Secrets of a namespace that is being deleted.

A namespace takes its Secrets and the Role that lets them be read along at once, while its promotions wait for their
proposals to be withdrawn. For that alone, and as long as the namespace is on its way out, what was read last is used.
"""

from __future__ import annotations

from collections.abc import Callable

from kardinal.objects import JsonObject, Key
from kardinal.runtime.finalizers import is_being_deleted

__all__ = ["KeptSecrets"]


class KeptSecrets:
    """Remembers Secrets of Git; `namespace` finds a Namespace of the agent's own cluster."""

    def __init__(self, namespace: Callable[[str], JsonObject | None]) -> None:
        self._namespace = namespace
        self._known: dict[Key, JsonObject] = {}

    def keep(self, key: Key, secret: JsonObject) -> None:
        """Remember a Secret that was read for a promotion; those of namespaces that are gone are forgotten."""
        gone = {known for known in self._known if self._namespace(known.namespace) is None}
        for known in gone:
            del self._known[known]
        self._known[key] = secret

    def forget(self, key: Key) -> None:
        """Forget a Secret that is gone while its namespace is not."""
        if not self.is_leaving(key.namespace):
            self._known.pop(key, None)

    def find(self, key: Key) -> JsonObject | None:
        """Return a Secret that its namespace has taken along; None while the namespace is not being deleted."""
        return self._known.get(key) if self.is_leaving(key.namespace) else None

    def is_leaving(self, namespace: str) -> bool:
        """Return whether a namespace is being deleted: a Secret that is gone does not come back to it."""
        found = self._namespace(namespace)
        return found is not None and is_being_deleted(found)
