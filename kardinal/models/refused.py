"""Fields that are declared in order to be refused: an API server silently drops fields that no schema names."""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue
from pydantic.fields import FieldInfo

__all__ = ["is_refused", "refused"]

_LENGTH = 253
_NEVER = "false"


def refused(remedy: str) -> Any:
    """Return the definition of a text field that is always refused; `remedy` says which field to use instead."""
    rules: list[JsonValue] = [{"rule": _NEVER, "message": f"there is no such field: {remedy}"}]
    return Field(max_length=_LENGTH, json_schema_extra={"x-kubernetes-validations": rules})


def is_refused(field: FieldInfo) -> bool:
    """Return whether a field of a model is declared only to be refused."""
    extra = field.json_schema_extra
    rules = extra.get("x-kubernetes-validations") if isinstance(extra, dict) else None
    return isinstance(rules, list) and any(isinstance(rule, dict) and rule.get("rule") == _NEVER for rule in rules)
