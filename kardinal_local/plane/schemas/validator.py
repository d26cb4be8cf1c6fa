"""Validate an object against everything its kind declares: its schema, its scale paths, then its CEL rules.

Compiling a schema costs milliseconds and depends on nothing but its text, so the result is shared by every kind, plane
and restart of the process that meets the same text again. Rules are asked last, and not at all of an object that is
too broken for them; the answer then says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause, StatusError
from kardinal_local.plane.schemas.causes import NOWHERE, blocks_rules, invalid
from kardinal_local.plane.schemas.rules import Rules, compile_rules
from kardinal_local.plane.schemas.scale import Scaled, scale_causes
from kardinal_local.plane.schemas.shaping import with_whole_numbers
from kardinal_local.plane.schemas.structural import Structural, compile_schema

__all__ = ["Outcome", "Validator", "compile_validator"]

_UNASKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object to store, the fields that were dropped from it, why it may not be stored after all, and warnings."""

    object: JsonObject
    unknown_fields: tuple[str, ...] = ()
    causes: tuple[Cause, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Validator:
    """A compiled schema with its rules."""

    structural: Structural
    rules: Rules
    scale: Scaled | None = None

    def filled(self, document: JsonObject) -> JsonObject:
        """A stored document as it is read: with the defaults its schema has gained since, unless they are too much."""
        try:
            return self.structural.shaped(document).object
        except StatusError:
            return document

    def read(self, document: JsonObject, decode: Callable[[Any], JsonObject]) -> JsonObject:
        """The document with the metadata of embedded objects decoded; Unreadable when it is none."""
        if self.structural.embedded is None:
            return document
        read: JsonObject = self.structural.embedded.read(document, decode)
        return read

    def process(
        self,
        document: JsonObject,
        *,
        old: JsonObject | None,
        subresource: str = "",
        applied: bool = False,
        found: Sequence[Cause] = (),
    ) -> Outcome:
        """Prune, default and validate; the document itself is left alone. A status is judged alone.

        `found`: what is wrong with its metadata, which comes first and may keep the rules from being asked.
        """
        shaped = self.structural.shaped(document, applied=applied)
        obj, status = shaped.object, subresource == "status"
        causes = [*found, *self.structural.judged(obj, old=old, status=status)]
        if self.scale is not None:
            causes += scale_causes(self.scale, obj, status=status)
        causes += self.structural.settled(obj, old=old, status=status)
        warnings: tuple[str, ...] = ()
        if self.rules and blocks_rules(causes):
            causes.append(invalid(NOWHERE, None, _UNASKED))
        elif self.rules:
            judgement = self.rules.judge(obj, old=old)
            causes += judgement.causes
            warnings = tuple(f"{cause.field}: {cause.message}" for cause in judgement.forgiven)
        if shaped.doubles:
            obj = with_whole_numbers(obj)
        return Outcome(obj, shaped.unknown_fields, tuple(causes), warnings)


def compile_validator(schema: JsonObject, *, scale: Scaled | None = None) -> Validator:
    """The validator of a schema that has been found good."""
    return _compile(orjson.dumps(schema), scale)


@lru_cache(maxsize=256)
def _compile(source: bytes, scale: Scaled | None) -> Validator:
    schema = orjson.loads(source)
    return Validator(compile_schema(schema), compile_rules(schema), scale)
