"""Adapt the claims on fields that were made under an older schema.

A CRD may turn a granular map or list into one value. Who owned parts of it owns the whole from then on; the other way
round nothing changes, parts are owned as they are written.
"""

from __future__ import annotations

from kardinal_local.plane.apply.fieldsets import FieldSet
from kardinal_local.plane.apply.types import ANY, Type

__all__ = ["settled"]


def settled(fields: FieldSet, declared: Type) -> FieldSet:
    """The set as it is under this type; itself when it fits, which is nearly always."""
    changed: FieldSet | None = None
    for step, node in fields.items():
        if not node:
            continue
        child = _below(step, declared)
        if child is None or child is ANY:
            continue
        atomic = child.atomic_map if child.is_map else child.atomic_list and not child.scalar
        inner = {} if atomic else settled(node, child)
        if inner is not node:
            changed = changed if changed is not None else dict(fields)
            changed[step] = inner
    return fields if changed is None else changed


def _below(step: str, declared: Type) -> Type | None:
    if step[0] != "f":
        return declared.items if declared.is_list else None
    return (declared.fields.get(step[2:]) or declared.element) if declared.is_map else None
