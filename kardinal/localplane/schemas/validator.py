"""One object against everything its kind says about it: schema first, then the CEL rules.

Compiling a schema costs milliseconds and depends on nothing but its text, so the result is shared by every kind, plane
and restart of the process that meets the same text again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import orjson

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.schemas.rules import Rules, compile_rules
from kardinal.localplane.schemas.structural import Outcome, Structural, compile_schema

__all__ = ["Validator", "compile_validator"]

# The real server reports faults of a CRD's schema under this path when the CRD has one version.
SCHEMA_FIELD = "spec.validation.openAPIV3Schema"


@dataclass(frozen=True, slots=True)
class Validator:
    """A compiled schema with its rules."""

    structural: Structural
    rules: Rules

    def process(self, document: JsonObject, *, old: JsonObject | None) -> Outcome:
        """Prune, default and validate; the document itself is left alone."""
        outcome = self.structural.process(document, old=old)
        if outcome.causes or not self.rules:
            return outcome
        return replace(outcome, causes=self.rules.validate(outcome.object, old=old))


def compile_validator(schema: JsonObject) -> Validator:
    """Raises `InvalidSchema` for a schema that no object could be checked with."""
    return _compile(orjson.dumps(schema))


@lru_cache(maxsize=256)
def _compile(source: bytes) -> Validator:
    schema = orjson.loads(source)
    return Validator(compile_schema(schema, field=SCHEMA_FIELD), compile_rules(schema, field=SCHEMA_FIELD))
