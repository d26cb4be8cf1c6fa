"""Models of the objects that a cache holds, validated once for each version of an object.

An object in a cache stays the same until another one takes its place, and reconcilers read it several times meanwhile:
validating it takes longer than most decisions about it. What is compared is the object itself and not its revision, so
that an object that was changed on the way is validated, too.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kardinal.api.base import Resource
from kardinal.objects import JsonObject

__all__ = ["StoredModels"]

R = TypeVar("R", bound=Resource)

_MOST = 256
"""Objects whose models are kept; those that were read first are given up."""


class StoredModels(Generic[R]):
    """The models of one kind."""

    def __init__(self, model: type[R], *, most: int = _MOST) -> None:
        self._model = model
        self._most = most
        self._known: dict[str, tuple[JsonObject, R]] = {}

    def of(self, obj: JsonObject) -> R:
        """Return the model of an object, which must not be changed afterwards; raises ValidationError."""
        uid = str(obj["metadata"].get("uid"))
        known = self._known.get(uid)
        if known is not None and known[0] is obj:
            return known[1]
        model = self._model.model_validate(obj)
        self._known[uid] = obj, model
        if len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return model
