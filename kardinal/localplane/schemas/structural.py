"""Structural schemas: what the server does to every object of a kind before it stores it.

`compile_schema` runs once when a kind appears and refuses a schema that a real server would refuse. `process` then
prunes, defaults and validates an object in one walk and never changes its argument. On an update, a fault in a part
of the object that the update leaves alone is forgiven, as real servers do (validation ratcheting): a CRD may
be tightened without locking out status writes to older objects. CEL rules are the business of `rules`.
Design: local-plane.md 2.3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause, InvalidSchema
from kardinal.localplane.schemas.causes import Path, render
from kardinal.localplane.schemas.compile import Compiler
from kardinal.localplane.schemas.nodes import Node, Report

__all__ = ["Outcome", "Structural", "compile_schema"]

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object to store, the fields that were dropped from it, and why it may not be stored after all."""

    object: JsonObject
    unknown_fields: tuple[str, ...]
    causes: tuple[Cause, ...]


@dataclass(frozen=True, slots=True)
class Structural:
    """One compiled schema."""

    source: JsonObject
    root: Node

    def process(self, obj: JsonObject, *, old: JsonObject | None = None) -> Outcome:
        """The pruned, defaulted and validated object; apiVersion, kind and metadata pass through untouched."""
        report = Report()
        result = self.root.process(obj, None, report)
        causes = report.causes
        if causes and old is not None:
            causes = [(path, cause) for path, cause in causes if not _unchanged(path, result, old)]
        return Outcome(
            object=result,
            unknown_fields=tuple(sorted(render(path) for path in report.unknown)),
            causes=tuple(cause for _, cause in causes),
        )


def compile_schema(source: JsonObject, *, field: str) -> Structural:
    """The schema ready for use, or every reason why it is none, below `field` of the CRD."""
    compiler = Compiler()
    root = compiler.root(source, field)
    if compiler.causes:
        raise InvalidSchema(compiler.causes)
    return Structural(source, root)


def _unchanged(path: Path, new: Any, old: Any) -> bool:
    """Whether the value at the path, or anything above it, is what it was."""
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    while steps:
        step = steps.pop()
        # Elements of a list cannot be matched by their index, so only the whole list counts.
        if isinstance(step, int) or not isinstance(new, dict) or not isinstance(old, dict):
            return bool(new == old)
        new, old = new.get(step, _ABSENT), old.get(step, _ABSENT)
    return bool(new == old)
