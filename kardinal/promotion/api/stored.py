"""Models of the objects in a cache, validated once for each version of an object, and its spec once for each spec.

An object in a cache is never changed, only replaced, and reconcilers read it several times; validating it takes longer
than most decisions. Objects are compared by identity and not by resourceVersion, so an object that was changed
elsewhere in the program is validated again. Most versions of an object differ in their status alone, and the spec of a
Bundle never changes: an equal spec keeps its model.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kardinal.models.base import Resource
from kardinal.objects import JsonObject

__all__ = ["StoredModels"]

R = TypeVar("R", bound=Resource)

_MOST = 256
"""The number of models that are kept; the oldest ones are dropped first."""


class StoredModels(Generic[R]):
    """The models of the objects of one kind."""

    def __init__(self, model: type[R], *, most: int = _MOST) -> None:
        self._model = model
        self._most = most
        self._known: dict[str, tuple[JsonObject, R]] = {}

    def of(self, obj: JsonObject) -> R:
        """Return the model of `obj`, which must not be changed afterwards; raises ValidationError."""
        uid = str(obj["metadata"].get("uid"))
        known = self._known.get(uid)
        if known is not None and known[0] is obj:
            return known[1]
        values = obj
        if known is not None and "spec" in obj and known[0].get("spec") == obj["spec"]:
            values = {**obj, "spec": getattr(known[1], "spec")}  # noqa: B009 - each kind has its own class of specs
        model = self._model.model_validate(values)
        self._known[uid] = obj, model
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return model
