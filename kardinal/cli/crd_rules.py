"""Evaluate the CEL rules of a resource's schema on a manifest, as an API server does when the object is created."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kardinal import cel
from kardinal.models.base import Resource
from kardinal.models.crds import spec_schema

__all__ = ["broken_rules"]

_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The time that rules are evaluated at: any time, because rules of a schema cannot read it."""


def broken_rules(model: type[Resource], spec: Any) -> Iterator[tuple[str, str]]:
    """Yield the field and the message of each rule that `spec` breaks.

    The field is a path such as `spec.environments[1].health`. Transition rules, which compare with `oldSelf`, are
    skipped, as the API server skips them when an object is created.
    """
    yield from _broken(spec_schema(model), spec, "spec")


def _broken(schema: dict[str, Any], value: Any, field: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"] and _is_false(rule["rule"], value):
            yield field + rule.get("fieldPath", ""), rule["message"]
    if isinstance(value, dict):
        for name, inner in schema.get("properties", {}).items():
            yield from _broken(inner, value.get(name), f"{field}.{name}")
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _broken(schema["items"], item, f"{field}[{index}]")


def _is_false(rule: str, value: Any) -> bool:
    """Return whether a rule evaluates to false.

    An error of the evaluation is not false: a value of the wrong type is reported by the validation of the model.
    """
    outcome = cel.compile(rule).evaluate({"self": value}, now=_MOMENT)
    return isinstance(outcome, cel.Value) and outcome.json is False
