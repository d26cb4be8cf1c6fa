"""Label selectors of watch nodes: `{key: value}`, or `{matchLabels, matchExpressions}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.objects import JsonObject, ResourceType

__all__ = ["Selection", "SelectorError", "parse_selector"]

Requirement = tuple[str, str, tuple[str, ...]]

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class SelectorError(Exception):
    """A label selector that an API server would refuse."""


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
        return all(_meets(labels, requirement) for requirement in self.requirements)


def parse_selector(selector: Mapping[str, Any]) -> tuple[Requirement, ...]:
    """Return the requirements of a selector in one of the two forms; raises SelectorError."""
    if not selector.keys() & {"matchLabels", "matchExpressions"}:
        selector = {"matchLabels": selector}
    if unknown := selector.keys() - {"matchLabels", "matchExpressions"}:
        raise SelectorError(f"{min(unknown)} beside matchLabels and matchExpressions")
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise SelectorError("the values of labels must be strings")
    return (*((key, "In", (value,)) for key, value in labels.items()), *map(_expression, expressions))


def _expression(expression: Any) -> Requirement:
    match expression:
        case {"key": str(key), "operator": str(operator), **rest} if operator in _OPERATORS:
            values = rest.get("values") or []
            if isinstance(values, list) and all(isinstance(value, str) for value in values):
                return key, operator, tuple(values)
    raise SelectorError(f"each of matchExpressions needs key, operator ({', '.join(_OPERATORS)}) and values")


def _meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    key, operator, values = requirement
    match operator:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
