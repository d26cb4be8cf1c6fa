"""The objects that a watch node selects: one kind, one namespace or all, and requirements on labels."""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.label_selectors import Requirement, meets

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects of one kind, in one namespace or in all, whose labels meet every requirement."""

    resource: ResourceType
    namespace: str | None
    requirements: tuple[Requirement, ...]

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The labels, each as key and value, that every selected object has."""
        wanted = ((key, values) for key, operator, values in self.requirements if operator == "In")
        return tuple((key, values[0]) for key, values in wanted if len(values) == 1)

    def matches(self, obj: JsonObject) -> bool:
        metadata = obj["metadata"]
        if self.namespace is not None and metadata.get("namespace") != self.namespace:
            return False
        labels = metadata.get("labels") or {}
        return all(meets(labels, requirement) for requirement in self.requirements)
