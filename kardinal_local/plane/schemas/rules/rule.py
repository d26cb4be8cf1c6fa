"""One CEL rule of a schema: compiled when its CRD is written, evaluated on every write of an object.

A rule that cannot be compiled, or that does not fit the types of its schema, refuses the CRD: accepted, it would either
pass everything or fail everything later. The clock does not exist for a rule, as on the real server. What a refusal
says is the message of the rule, or what its message expression makes of the object, or the rule itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kardinal import cel
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import OMITTED, Path, duplicate, forbidden, invalid, render, required
from kardinal_local.plane.schemas.fieldpaths import find_field
from kardinal_local.plane.schemas.rules.library import RULES

__all__ = ["Rule", "compile_rule"]

_NO_TIME: Final = datetime.fromtimestamp(0, UTC)
_MESSAGE_LIMIT: Final = 5 * 1024
_NO_FIELD: Final = re.compile(r"[.?]([A-Za-z_]\w*)`: \w+ has no fields")
_WORDS: Final = {
    "the number does not fit into 64 bits": "integer overflow",
    "value() of an optional that has none": "optional.none() dereference",
    "int() needs the digits of a whole number": "type conversion error from 'string' to 'int'",
    "double() needs the digits of a number": "type conversion error from 'string' to 'double'",
    "bool() needs `true` or `false`": "type conversion error from 'string' to 'bool'",
    "duration() needs text such as 1h30m": "type conversion error from 'string' to 'google.protobuf.Duration'",
    "timestamp() needs RFC 3339 text such as 2026-04-09T12:00:00Z": (
        "type conversion error from 'string' to 'google.protobuf.Timestamp'"
    ),
}
"""What the compiler's runtime says where kardinal's own words are others."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. A transition rule compares with the old value; without one it rests, unless it takes none."""

    source: str
    program: cel.Program
    transition: bool
    optional_old: bool
    message: str
    message_program: cel.Program | None
    reason: str
    field: str
    kind: str

    def judge(self, value: Any, scope: Mapping[str, Any], path: Path) -> Cause | None:
        """Why the value may not be stored."""
        outcome = self.program.evaluate(scope, now=_NO_TIME)
        if isinstance(outcome, cel.Value) and outcome.json is True:
            return None
        if not isinstance(outcome, cel.Value):
            return invalid(render(path), self.kind, self._failure(outcome))
        place = render((path, self.field) if self.field else path)
        detail = self._explain(scope)
        shown = OMITTED if self.kind in ("object", "array") else value
        match self.reason:
            case "FieldValueForbidden":
                return forbidden(place, detail)
            case "FieldValueRequired":
                return required(place, detail)
            case "FieldValueDuplicate":
                return duplicate(place, shown)
        return invalid(place, shown, detail)

    def _failure(self, outcome: cel.Missing | cel.Failed) -> str:
        told = self.message or self.source
        if isinstance(outcome, cel.Missing):
            what = "index out of bounds" if isinstance(outcome.key, int) else "no such key"
            return f"{what}: {outcome.key} evaluating rule: {told}"
        if field := _NO_FIELD.search(outcome.reason):
            return f"no such key: {field[1]} evaluating rule: {told}"
        if outcome.kind == "type" and outcome.reason not in _WORDS:
            words = "call arguments did not match a supported operator, function or macro signature for rule"
            return f"'no such overload': {words}: {told}"
        return f"{_WORDS.get(outcome.reason, outcome.reason)} evaluating rule: {told}"

    def _explain(self, scope: Mapping[str, Any]) -> str:
        if self.message_program is not None:
            outcome = self.message_program.evaluate(scope, now=_NO_TIME)
            if isinstance(outcome, cel.Value) and isinstance(outcome.json, str):
                text = outcome.json.strip()
                if text and "\n" not in text and len(text.encode()) <= _MESSAGE_LIMIT:
                    return text
        return self.message or f"failed rule: {self.source}"


def compile_rule(source: JsonObject, *, schema: JsonObject) -> Rule:
    """The rule ready for use; it has been checked before."""
    program = cel.compile(source["rule"], RULES)
    expression, path = source.get("messageExpression") or "", source.get("fieldPath") or ""
    return Rule(
        source=source["rule"].strip(),
        program=program,
        transition=any(reference.root == "oldSelf" for reference in program.references),
        optional_old=bool(source.get("optionalOldSelf")),
        message=(source.get("message") or "").strip(),
        message_program=cel.compile(expression, RULES) if expression else None,
        reason=source.get("reason") or "FieldValueInvalid",
        field=render(find_field(path, schema)[0]) if path else "",
        kind=schema.get("type") or "",
    )
