"""Check the rules of a schema, and report in the words of the compiler those that a CRD is refused for.

A complaint shows the line it is about and points at the place, like every tool built on the same compiler does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from kardinal import cel
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.schemas.causes import invalid
from kardinal_local.plane.schemas.internal import internal_rule
from kardinal_local.plane.schemas.keywords import VALIDATIONS
from kardinal_local.plane.schemas.rules.celtypes import BOOL, STRING, Type, optional_of
from kardinal_local.plane.schemas.rules.checker import Checked, check
from kardinal_local.plane.schemas.rules.complaints import Complaint
from kardinal_local.plane.schemas.rules.declarations import declared_type
from kardinal_local.plane.schemas.rules.library import RULES

__all__ = ["rule_causes"]

_WORDS: Final = {
    "has() takes one field selection, as in `has(a.b)`": "invalid argument to has() macro",
    "the number does not fit into 64 bits": "invalid int literal",
    **{
        f"the {which} argument of {macro}() must be a plain name": "argument must be a simple name"
        for which in ("first", "second")
        for macro in RULES.macros
    },
}
"""What the compiler says where kardinal's own words are others."""
_UNTYPED: Final = "unable to convert structural schema to CEL declarations"
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)


def rule_causes(schema: JsonObject, at: str, *, root: bool, uncorrelatable: str) -> Iterator[Cause]:
    """What is wrong with the rules of one schema node; `uncorrelatable` names the list that has no old elements."""
    place = f"{at}.{VALIDATIONS}"
    declared = declared_type(schema, root=root)
    if declared is None:
        words = "internal error: failed to construct type information for x-kubernetes-validations rules"
        yield Cause("InternalError", place, f"Internal error: {words}: {_UNTYPED}")
        return
    for index, rule in enumerate(schema[VALIDATIONS]):
        yield from _rule(rule, f"{place}[{index}]", declared, uncorrelatable=uncorrelatable)


def _rule(rule: JsonObject, at: str, declared: Type, *, uncorrelatable: str) -> Iterator[Cause]:
    optional = bool(rule.get("optionalOldSelf"))
    variables = {"self": declared, "oldSelf": optional_of(declared) if optional else declared}
    text, expression = rule["rule"], rule.get("messageExpression") or ""
    checked = _checked(text, variables)
    if isinstance(checked, str):
        yield _refusal(rule, f"{at}.rule", f"compilation failed: {checked}")
    elif checked.type != BOOL:
        yield _refusal(rule, f"{at}.rule", "cel expression must evaluate to a bool")
    elif expression:
        yield from _message(rule, expression, f"{at}.messageExpression", variables)
    transition = isinstance(checked, Checked) and checked.type == BOOL and "oldSelf" in checked.reads
    if transition and uncorrelatable:
        words = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        yield invalid(f"{at}.rule", text, words)
    elif not transition and rule.get("optionalOldSelf") is not None:
        words = "may not be set if oldSelf is not used in rule"
        yield invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], words)


def _message(rule: JsonObject, expression: str, at: str, variables: Mapping[str, Type]) -> Iterator[Cause]:
    checked = _checked(expression, variables)
    if isinstance(checked, str):
        yield _refusal(rule, at, f"messageExpression compilation failed: {checked}")
    elif checked.type != STRING:
        yield _refusal(rule, at, "messageExpression must evaluate to a string")


def _refusal(rule: JsonObject, field: str, detail: str) -> Cause:
    return Cause("FieldValueInvalid", field, f"Invalid value: {internal_rule(rule)}: {detail}")


def _checked(text: str, variables: Mapping[str, Type]) -> Checked | str:
    """What the check finds; its complaints as one text when there are any."""
    try:
        node = _syntax(text)
    except cel.CompileError as error:
        return _unreadable(text, error).told(text)
    checked = check(node, variables)
    if checked.complaints:
        return "\n".join(complaint.told(text) for complaint in checked.complaints)
    return checked


@lru_cache(maxsize=2048)
def _syntax(text: str) -> cel.Node:
    return cel.lower(text, RULES)


def _unreadable(text: str, error: cel.CompileError) -> Complaint:
    """The compiler's words for an expression that is none."""
    if error.message in _WORDS:
        return Complaint(error.position, _WORDS[error.message])
    if error.position < len(text):
        words = re.sub(r"^unexpected `(.*)`$", r"extraneous input '\1' expecting <EOF>", error.message)
        return Complaint(error.position, f"Syntax error: {words}")
    if text.endswith("."):
        return Complaint(len(text), "Syntax error: no viable alternative at input '.'")
    return Complaint(error.position, f"Syntax error: mismatched input '<EOF>' expecting {_OPERAND}")
