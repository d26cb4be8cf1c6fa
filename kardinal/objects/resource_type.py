"""The type of an object as plain JSON, and the URL paths of a kind on an API server.

Objects stay plain dictionaries: a store of ten thousand pydantic models costs seconds of the event loop and twice the
memory, and most of the objects are never read. A model is built when a reconciler reads an object of its own kind.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

__all__ = ["JsonObject", "ResourceType"]

JsonObject: TypeAlias = dict[str, Any]


class ResourceType(NamedTuple):
    """One kind in one version of its group; `group` is empty for the core group.

    A tuple, since it is part of the key of every object: a pass over a thousand nodes hashes some thousands of keys,
    and Python code for each hash would take as long as the pass.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, *, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """Return the URL path of the collection, of one object, or of one of its subresources."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)
