"""Compile a structural schema, by which every object of a kind is pruned, defaulted and validated.

An object is pruned and defaulted first (`shaping`), then judged (`judging`, `embedded`, `uniqueness`); the argument is
never changed. A status is judged apart from the rest of its object, since only the status was written. CEL rules are
the business of `rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import NOWHERE, render
from kardinal_local.plane.schemas.correlation import ABSENT
from kardinal_local.plane.schemas.embedded import Embedded, compile_embedded
from kardinal_local.plane.schemas.judging import Judge, compile_judge
from kardinal_local.plane.schemas.shaping import Report, Shape, compile_shape
from kardinal_local.plane.schemas.uniqueness import Uniqueness, compile_uniqueness

__all__ = ["Shaped", "Structural", "below", "compile_schema"]


@dataclass(frozen=True, slots=True)
class Shaped:
    """The object as its schema has it, the fields that were dropped from it, and whether doubles are in it."""

    object: JsonObject
    unknown_fields: tuple[str, ...]
    doubles: bool


@dataclass(frozen=True, slots=True)
class Structural:
    """One compiled schema."""

    source: JsonObject
    shape: Shape
    root: Judge
    embedded: Embedded | None
    uniqueness: Uniqueness | None

    def shaped(self, obj: JsonObject, *, applied: bool = False) -> Shaped:
        """The pruned and defaulted object; apiVersion, kind and metadata pass through untouched.

        The nulls of an applied object stay to be judged: an apply leaves them where something lost all its content.
        """
        report = Report(keeps_nulls=applied)
        result = self.shape.shaped(obj, None, report)
        return Shaped(result, tuple(sorted(map(render, report.unknown))), doubles=report.doubles)

    def judged(self, obj: JsonObject, *, old: JsonObject | None, status: bool) -> list[Cause]:
        """What the keywords of the schema say against a shaped object, or against its status alone."""
        return self._status(obj, old) if status else self._whole(obj, old)

    def settled(self, obj: JsonObject, *, old: JsonObject | None, status: bool) -> list[Cause]:
        """What is wrong with embedded objects and with the elements of sets and keyed lists."""
        causes = list(self.embedded.find(obj)) if self.embedded is not None and not status else []
        duplicates = list(self.uniqueness.find(obj)) if self.uniqueness is not None else []
        if duplicates and self.uniqueness is not None and (old is None or not any(self.uniqueness.find(old))):
            causes += duplicates
        return causes

    def _whole(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        causes: list[Cause] = []
        self.root.judge(obj, ABSENT if old is None else old, "", causes)
        return causes

    def _status(self, obj: JsonObject, old: JsonObject | None) -> list[Cause]:
        judge = self.root.fields.get("status")
        if judge is None or "status" not in obj:
            return []
        before: Any = ABSENT if old is None else old.get("status", ABSENT)
        causes: list[Cause] = []
        judge.judge(obj["status"], before, "", causes)
        return [below(cause, "status") for cause in causes]


def below(cause: Cause, field: str) -> Cause:
    """A cause whose field was counted from somewhere below the root."""
    return replace(cause, field=field if cause.field == NOWHERE else f"{field}.{cause.field.removeprefix('.')}")


def compile_schema(source: JsonObject) -> Structural:
    """The schema ready for use."""
    return Structural(
        source,
        shape=compile_shape(source, root=True),
        root=compile_judge(source),
        embedded=compile_embedded(source, root=True),
        uniqueness=compile_uniqueness(source),
    )
