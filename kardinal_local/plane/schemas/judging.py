"""Validate an object that has been pruned and defaulted, keyword by keyword, as the real server does.

The judges are made once per CRD and shared by all requests. On an update each value is paired with its old value where
there is one (fields and entries by name, elements of keyed lists by key, others not at all), and the faults of a value
that the update leaves alone are forgiven: a CRD may be tightened without locking out writes to older objects
(validation ratcheting). Every judge counts what it found right, because that count decides which branch of an anyOf is
reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import invalid, required, too_many, type_invalid
from kardinal_local.plane.schemas.checks import Check, check_enum, format_name, number_check, text_check, types_of
from kardinal_local.plane.schemas.combinators import Combinators, compile_combinators
from kardinal_local.plane.schemas.correlation import ABSENT, Correlation, correlation_of

__all__ = ["Judge", "compile_judge"]

_NAMES: Final[dict[type, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    dict: "object",
    type(None): "null",
}
_FORMS: Final[dict[type, str]] = {int: "int64", float: "float64"}
_NO_PAST: Final = Correlation()
_LARGEST_INTEGER: Final = 2**53 - 1
"""Beyond it a number with a decimal point counts as none without."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Everything one schema node asks of a value."""

    types: tuple[str, ...] = ()
    format: str = ""
    nullable: bool = False
    enum: list[Any] | None = None
    text: Check | None = None
    number: Check | None = None
    combinators: Combinators | None = None
    fields: Mapping[str, Judge] = field(default_factory=dict)
    additional: Judge | bool | None = None
    required: tuple[str, ...] = ()
    properties_bounds: tuple[int | None, int | None] = (None, None)
    items: Judge | None = None
    items_bounds: tuple[int | None, int | None] = (None, None)
    correlation: Correlation = _NO_PAST
    plain: type | None = None

    def judge(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        """Add what is wrong with a value; how many checks it passed."""
        before = len(causes)
        passed = self._judge(value, old, path, causes)
        if len(causes) > before:
            found = list(dict.fromkeys(causes[before:]))
            forgiven = old is not ABSENT and self.correlation.equal(value, old)
            causes[before:] = [] if forgiven else found
        return passed

    def _judge(self, value: Any, old: Any, path: str, causes: list[Cause]) -> int:
        kind = value.__class__
        typed = self._judge_type(value, kind, path, causes)
        if value is None:
            if self.enum:
                check_enum(None, self.enum, path, causes)
            return typed
        passed = 1 + typed + (1 if self.types or self.format else 0)
        passed += 2 if self.combinators is None else 1 + self.combinators.judge(value, old, path, causes)
        if kind is str:
            passed += 1
            if self.text is not None:
                self.text(value, path, causes)
        elif kind is int or kind is float:
            passed += 2
            if self.number is not None:
                self.number(value, path, causes)
        elif kind is list:
            passed += 2 + self._judge_items(value, old, path, causes)
        if self.enum:
            check_enum(value, self.enum, path, causes)
        if kind is dict:
            passed += 1 + self._judge_fields(value, old, path, causes)
        return passed + 1

    def _judge_type(self, value: Any, kind: type, path: str, causes: list[Cause]) -> int:
        if not self.types and not self.format:
            return 0
        found = _NAMES[kind]
        if value is None:
            if not self.types or self.nullable:
                return 1
        elif self._fits(value, kind, found):
            return 1
        elif self.format and kind is not str and kind is not list:
            form = _FORMS.get(kind, "")
            causes.append(type_invalid(path, form, f'{path} in body must be of type {self.format}: "{form}"'))
            return 0
        elif self.format and "number" not in self.types and "integer" not in self.types:
            return 1
        expected = ",".join(self.types)
        causes.append(type_invalid(path, found, f'{path} in body must be of type {expected}: "{found}"'))
        return 0

    def _fits(self, value: Any, kind: type, found: str) -> bool:
        types = self.types
        if found in types:
            return True
        if kind is float:
            return "integer" in types and value.is_integer() and abs(value) <= _LARGEST_INTEGER
        return kind is int and ("number" in types or self.format == "int64")

    def _judge_items(self, value: list[Any], old: Any, path: str, causes: list[Cause]) -> int:
        passed = 0
        if (items := self.items) is not None:
            match = self.correlation.matcher(old)
            for index, item in enumerate(value):
                if item.__class__ is items.plain:
                    passed += _PLAIN_PASSED[items.plain]
                else:
                    before = match(item) if match is not None else ABSENT
                    passed += items.judge(item, before, f"{path}[{index}]", causes)
        least, most = self.items_bounds
        if least is not None and (size := len(value)) < least:
            causes.append(invalid(path, size, f"{path} in body should have at least {least} items"))
        if most is not None and len(value) > most:
            causes.append(too_many(path, len(value), most))
        return passed

    def _judge_fields(self, value: JsonObject, old: Any, path: str, causes: list[Cause]) -> int:
        passed = 0
        least, most = self.properties_bounds
        if least is not None and (size := len(value)) < least:
            causes.append(invalid(path, size, f"{path} in body should have at least {least} properties"))
        if most is not None and len(value) > most:
            causes.append(too_many(path, len(value), most))
        known = old.__class__ is dict
        fields, additional = self.fields, self.additional
        for key, item in value.items():
            judge = fields.get(key)
            if judge is None:
                if additional is None or additional is True:
                    continue
                if additional is False:
                    causes.append(invalid(path, key, f"{path}.{key} in body is a forbidden property"))
                    continue
                judge = additional
                place = f"{path}.{key}"
            else:
                place = f"{path}.{key}" if path else key
            if item.__class__ is judge.plain:
                passed += _PLAIN_PASSED[judge.plain]
                continue
            hidden = not path and key in ("apiVersion", "kind")
            passed += judge.judge(item, old.get(key, ABSENT) if known and not hidden else ABSENT, place, causes)
        causes += [required(f"{path}.{key}" if path else key) for key in self.required if key not in value]
        return passed


_PLAIN_PASSED: Final[Mapping[type | None, int]] = {str: 7, int: 8, float: 8, bool: 6}
"""What a scalar passes that only has to be of its type."""


def compile_judge(schema: JsonObject, correlation: Correlation | None = None) -> Judge:
    """The judge of a schema, which has been checked before; a branch is correlated as what it is a branch of."""
    correlation = correlation or correlation_of(schema)
    types, form = types_of(schema), format_name(schema)
    text, number = text_check(schema), number_check(schema)
    enum = schema.get("enum") or None
    combinators = compile_combinators(schema, lambda branch: compile_judge(branch, correlation))
    extra, items = schema.get("additionalProperties"), schema.get("items")
    bare = not (enum or combinators or form)
    return Judge(
        types=types,
        format=form,
        nullable=bool(schema.get("nullable")),
        enum=enum,
        text=text,
        number=number,
        combinators=combinators,
        fields={
            name: compile_judge(child, correlation.of_field(name))
            for name, child in (schema.get("properties") or {}).items()
        },
        additional=compile_judge(extra, correlation.additional) if isinstance(extra, dict) else extra,
        required=tuple(schema.get("required") or ()),
        properties_bounds=(schema.get("minProperties"), schema.get("maxProperties")),
        items=compile_judge(items, correlation.items) if isinstance(items, dict) else None,
        items_bounds=(schema.get("minItems"), schema.get("maxItems")),
        correlation=correlation,
        plain=_plain_class(types, text, number) if bare else None,
    )


def _plain_class(types: tuple[str, ...], text: Check | None, number: Check | None) -> type | None:
    """The class whose values need no look at all."""
    match types:
        case ("string",):
            return str if text is None else None
        case ("boolean",):
            return bool
        case ("number",):
            return float if number is None else None
    return None
