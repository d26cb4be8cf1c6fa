"""One CEL rule of a schema: compiled when its CRD is created, asked on every write.

A rule that this plane cannot compile, or that reads a field its schema does not have, refuses the CRD: accepted, it
would either pass everything or fail everything later. The clock does not exist for a rule, as on the real server.
Messages name the rule as its author wrote it. Design: local-plane.md 2.3 (CRDs), 4 (CEL).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kardinal import cel
from kardinal.localplane.documents import JsonObject
from kardinal.localplane.errors import Cause
from kardinal.localplane.schemas.causes import Path, for_reason, forbidden, invalid, not_supported, required, type_name
from kardinal.localplane.schemas.types import child_schema, type_of

__all__ = ["Rule", "compile_rule"]

_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_WRONG_TYPE: Final = {
    "bool": "cel expression must evaluate to a bool",
    "string": "messageExpression must evaluate to a string",
}
_NO_TIME: Final = datetime.fromtimestamp(0, UTC)
_FIELD_PATH: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['((?:[^'\\]|\\.)+)'\]")


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule. A transition rule compares with the old value and means nothing without one."""

    source: str
    program: cel.Program
    transition: bool
    message: str
    message_program: cel.Program | None
    reason: str
    field_path: tuple[str, ...]

    def judge(self, value: Any, scope: dict[str, Any], path: Path) -> Cause | None:
        outcome = self.program.evaluate(scope, now=_NO_TIME)
        if isinstance(outcome, cel.Value) and outcome.json is True:
            return None
        if not isinstance(outcome, cel.Value):
            return invalid(path, type_name(value), f"{_why(outcome)} evaluating rule: {self.source}")
        for step in self.field_path:
            path = (path, step)
        return for_reason(self.reason, path, value, self._explain(scope))

    def _explain(self, scope: dict[str, Any]) -> str:
        if self.message_program is not None:
            outcome = self.message_program.evaluate(scope, now=_NO_TIME)
            if isinstance(outcome, cel.Value) and isinstance(outcome.json, str):
                text = outcome.json.strip()
                if text and "\n" not in text:
                    return text
        return self.message or f"failed rule: {self.source}"


def compile_rule(source: Any, at: str, *, schema: JsonObject, correlatable: bool, causes: list[Cause]) -> Rule | None:
    """The rule ready for use; None, and why, when there is none."""
    if not isinstance(source, dict):
        causes.append(invalid((None, at), source, "must be an object"))
        return None
    text = str(source.get("rule") or "").strip()
    if not text:
        causes.append(required((None, f"{at}.rule"), "rule is not specified"))
        return None
    before = len(causes)
    program = _compile(text, f"{at}.rule", schema, causes, needed="bool")
    message = str(source.get("message") or "").strip()
    if "\n" in message:
        causes.append(invalid((None, f"{at}.message"), source["message"], "must not contain line breaks"))
    expression = source.get("messageExpression")
    message_program = None
    if expression:
        message_program = _compile(expression, f"{at}.messageExpression", schema, causes, needed="string")
    reason = source.get("reason") or "FieldValueInvalid"
    if reason not in _REASONS:
        causes.append(not_supported((None, f"{at}.reason"), reason, list(_REASONS)))
    if source.get("optionalOldSelf"):
        causes.append(forbidden((None, f"{at}.optionalOldSelf"), "optionalOldSelf is not available on the local plane"))
    transition = program is not None and any(reference.root == "oldSelf" for reference in program.references)
    if transition and not correlatable:
        words = "oldSelf cannot be used in elements of a list that is not a map: the old element cannot be found"
        causes.append(invalid((None, f"{at}.rule"), text, words))
    field_path = _field_path(source.get("fieldPath"), schema)
    if field_path is None:
        causes.append(invalid((None, f"{at}.fieldPath"), source["fieldPath"], "must be a valid path"))
    if program is None or field_path is None or len(causes) > before:
        return None
    return Rule(text, program, transition, message, message_program, reason, field_path)


def _compile(text: str, at: str, schema: JsonObject, causes: list[Cause], *, needed: str) -> cel.Program | None:
    try:
        program = cel.compile(text)
    except cel.CompileError as error:
        causes.append(invalid((None, at), text, f"compilation failed: {error}"))
        return None
    problems = [f"compilation failed: {problem}" for problem in _undefined(program.references, schema)]
    if program.volatile:
        problems.append("compilation failed: a rule cannot read the clock: `now` does not exist here")
    if not problems and type_of(cel.lower(text), schema) not in (needed, None):
        problems.append(_WRONG_TYPE[needed])
    causes.extend(invalid((None, at), text, problem) for problem in problems)
    return None if problems else program


def _undefined(references: Iterable[cel.Reference], schema: JsonObject) -> Iterable[str]:
    """What an expression names that its schema does not have; maps and preserved content have every field."""
    for reference in sorted(references, key=str):
        if reference.root not in ("self", "oldSelf"):
            yield f"undeclared reference to `{reference.root}`: a rule sees self and oldSelf"
            continue
        place = schema
        for name in reference.path:
            child = child_schema(place, name)
            if child is None:
                yield f"undefined field `{name}` in {reference}"
                break
            place = child


def _field_path(path: Any, schema: JsonObject) -> tuple[str, ...] | None:
    """The steps of `.a['b'].c`, each of which the schema must have."""
    if not path:
        return ()
    steps: list[str] = []
    position, place = 0, schema
    while position < len(path):
        match = _FIELD_PATH.match(path, position)
        child = child_schema(place, match[1] or match[2]) if match else None
        if match is None or child is None:
            return None
        steps.append(match[1] or match[2])
        position, place = match.end(), child
    return tuple(steps)


def _why(outcome: cel.Missing | cel.Failed) -> str:
    return f"no such key: {outcome.path}" if isinstance(outcome, cel.Missing) else outcome.message
