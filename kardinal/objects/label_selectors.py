"""Label selectors: `{key: value}`, or `{matchLabels, matchExpressions}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["OPERATORS", "Requirement", "SelectorError", "meets", "parse_selector"]

Requirement = tuple[str, str, tuple[str, ...]]
"""Key, operator and values, such as `("tier", "In", ("web",))`."""

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class SelectorError(Exception):
    """A label selector that an API server would refuse."""


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
        case {"key": str(key), "operator": str(operator), **rest} if operator in OPERATORS:
            values = rest.get("values") or []
            if isinstance(values, list) and all(isinstance(value, str) for value in values):
                return key, operator, tuple(values)
    raise SelectorError(f"each of matchExpressions needs key, operator ({', '.join(OPERATORS)}) and values")


def meets(labels: Mapping[str, str], requirement: Requirement) -> bool:
    """Return whether labels meet a requirement; labels without the key meet `NotIn`."""
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
