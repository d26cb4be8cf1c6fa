"""CEL rules of schemas: what refuses an object, and what refuses the CRD."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kardinal_local.plane.schemas import schema_causes
from kardinal_local.plane.schemas.rules import Rules, compile_rules

STRING = {"type": "string"}


def fields(*rules: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "x-kubernetes-validations": list(rules)}


def compiled(spec: dict[str, Any]) -> Rules:
    return compile_rules({"type": "object", "properties": {"spec": spec}})


def judged(schema: dict[str, Any], spec: Any, *, old: Any = None) -> list[tuple[str, str, str]]:
    obj, previous = {"spec": spec}, None if old is None else {"spec": old}
    before = copy.deepcopy((obj, previous))
    causes = compiled(schema).judge(obj, old=previous).causes
    assert (obj, previous) == before
    return [(cause.reason, cause.field, cause.message) for cause in causes]


def refusals(spec: dict[str, Any]) -> list[tuple[str, str]]:
    causes = schema_causes({"type": "object", "properties": {"spec": spec}}, "schema", status=False)
    return [(cause.field.removeprefix("schema.properties[spec]"), cause.message) for cause in causes]


def test_a_schema_without_rules_is_false_and_judges_nothing() -> None:
    rules = compile_rules({"type": "object", "properties": {"spec": {"type": "object"}}})
    assert not rules
    assert rules.judge({"spec": {}}, old=None).causes == []


def test_a_broken_rule_says_its_message_at_its_field() -> None:
    schema = fields({"rule": "self.a != self.b", "message": " a and b differ "}, a=STRING, b=STRING)
    assert compiled(schema)
    assert judged(schema, {"a": "1", "b": "2"}) == []
    assert judged(schema, {"a": "1", "b": "1"}) == [("FieldValueInvalid", "spec", "Invalid value: a and b differ")]


def test_a_scalar_at_fault_is_shown_and_a_rule_without_message_shows_itself() -> None:
    schema = fields(path={"type": "string", "x-kubernetes-validations": [{"rule": "!self.startsWith('/')"}]})
    assert judged(schema, {"path": "/etc"}) == [
        ("FieldValueInvalid", "spec.path", "Invalid value: \"/etc\": failed rule: !self.startsWith('/')")
    ]


@pytest.mark.parametrize(
    ("path", "good"),
    [("overlays/dev", True), ("a/../b", False), ("..", False), ("/abs", False), ("a..b/c", True)],
)
def test_path_rules_hold_with_split_and_with_matches(path: str, good: bool) -> None:
    for rule in (
        "!self.startsWith('/') && self.split('/').all(s, s != '..')",
        "!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')",
    ):
        schema = fields(path={"type": "string", "x-kubernetes-validations": [{"rule": rule}]})
        assert (judged(schema, {"path": path}) == []) is good


def test_reason_field_path_and_message_expression_shape_the_cause() -> None:
    schema = fields(
        {"rule": "self.a != 'x'", "reason": "FieldValueForbidden", "fieldPath": ".a", "message": "no x"},
        {"rule": "self.a != 'y'", "reason": "FieldValueRequired", "fieldPath": ".m['k']", "message": "need k"},
        {"rule": "self.a != 'z'", "messageExpression": "'got ' + self.a"},
        {"rule": "self.a != 'w'", "messageExpression": "self.missing", "message": "plain"},
        a=STRING,
        m={"type": "object", "additionalProperties": STRING},
        missing=STRING,
    )
    assert judged(schema, {"a": "x"}) == [("FieldValueForbidden", "spec.a", "Forbidden: no x")]
    assert judged(schema, {"a": "y"}) == [("FieldValueRequired", "spec.m[k]", "Required value: need k")]
    assert judged(schema, {"a": "z"}) == [("FieldValueInvalid", "spec", "Invalid value: got z")]
    assert judged(schema, {"a": "w"}) == [("FieldValueInvalid", "spec", "Invalid value: plain")]


def test_a_rule_that_cannot_be_computed_refuses_the_object_and_says_why() -> None:
    schema = fields({"rule": "self.a == 'x' || 10 / self.n > 0"}, a=STRING, n={"type": "integer"})
    [(reason, field, message)] = judged(schema, {"a": "y"})
    assert (reason, field) == ("FieldValueInvalid", "spec")
    assert message.startswith('Invalid value: "object": no such key: n evaluating rule: self.a == ')
    assert "division by zero evaluating rule" in judged(schema, {"a": "y", "n": 0})[0][2]


def test_a_rule_whose_data_make_it_no_boolean_is_not_kept() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    assert judged(fields({"rule": "self.free.x"}, free=free), {"free": {"x": 1}}) != []


TYPED = fields(
    a={"type": "integer"},
    b=STRING,
    ok={"type": "boolean"},
    at={"type": "string", "format": "date-time"},
    port={"x-kubernetes-int-or-string": True},
    flags={"type": "object", "additionalProperties": {"type": "boolean"}},
    names={"type": "array", "items": STRING},
)


@pytest.mark.parametrize(
    "rule",
    [
        *("self.a", "self.a + 1", "-self.a", "'x'", "self.b", "size(self.b)", "{'a': 1}", "[1]", "null", "self", "int"),
        *("self.ok ? self.a : 1", "self.at", "self.names.map(n, n)", "self.b + 'x'", "self.flags", "dyn(self.a)"),
        *("self.flags['x'] ? self.b : 'y'", "oldSelf.a", "type(self.a)", "duration('1s')", "1.5", "string(self.a)"),
    ],
)
def test_a_rule_that_is_no_boolean_whatever_the_data_refuses_the_crd(rule: str) -> None:
    [(field, message)] = refusals({**TYPED, "x-kubernetes-validations": [{"rule": rule}]})
    assert field == ".x-kubernetes-validations[0].rule"
    assert message.endswith(": cel expression must evaluate to a bool")


@pytest.mark.parametrize(
    "rule",
    [
        *("true", "self.ok", "self.flags['x']", "!self.ok", "self.a > 1 && self.ok", "has(self.a)", "self.b in ['x']"),
        *("self.names.all(n, n != '')", "self.ok ? self.flags.x : false", "self.names.exists(n, self.ok)"),
        *("self.b.startsWith('x')", "self.?b.hasValue()", "bool(self.b)", "self.names.filter(n, true)[0] == 'x'"),
        *("type(self.port) == int", "self.?ok.orValue(true)", "[true][0]", "self == oldSelf"),
    ],
)
def test_a_rule_that_may_be_a_boolean_is_taken(rule: str) -> None:
    assert compiled({**TYPED, "x-kubernetes-validations": [{"rule": rule}]})


def test_a_message_expression_has_to_be_a_string() -> None:
    [(field, message)] = refusals(fields({"rule": "true", "messageExpression": "self.a"}, a={"type": "integer"}))
    assert field == ".x-kubernetes-validations[0].messageExpression"
    assert message.endswith(": messageExpression must evaluate to a string")
    assert compiled(fields({"rule": "true", "messageExpression": "self.a + '!'"}, a=STRING))


def test_transition_rules_compare_old_and_new_and_rest_on_create() -> None:
    schema = fields(
        a={"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed"}]},
        n={"type": "integer", "x-kubernetes-validations": [{"rule": "self > oldSelf", "message": "must grow"}]},
    )
    assert judged(schema, {"a": "1", "n": 1}) == []
    assert judged(schema, {"a": "2", "n": 2}, old={"a": "1", "n": 1}) == [
        ("FieldValueInvalid", "spec.a", 'Invalid value: "2": fixed')
    ]
    assert judged(schema, {"a": "1"}, old={"a": "1", "n": 1}) == []
    assert judged(schema, {"n": 1}, old={"n": 1}) == [("FieldValueInvalid", "spec.n", "Invalid value: 1: must grow")]


def test_a_field_that_may_not_change_once_set_stays_so() -> None:
    rule = "has(self.a) == has(oldSelf.a) && (!has(self.a) || self.a == oldSelf.a)"
    schema = fields({"rule": rule, "message": "a is immutable"}, a=STRING, b=STRING)
    assert judged(schema, {"b": "1"}, old={"b": "2"}) == []
    assert judged(schema, {"a": "1"}, old={}) != []
    assert judged(schema, {}, old={"a": "1"}) != []


def test_elements_of_a_keyed_list_meet_their_old_selves_by_key() -> None:
    item = fields({"rule": "self.v == oldSelf.v", "message": "fixed"}, name=STRING, v=STRING)
    schema = fields(
        l={"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    )
    old = {"l": [{"name": "a", "v": "1"}, {"name": "b", "v": "1"}]}
    new = {"l": [{"name": "c", "v": "9"}, {"name": "b", "v": "1"}, {"name": "a", "v": "2"}]}
    assert [field for _, field, _ in judged(schema, new, old=old)] == ["spec.l[2]"]


def test_a_value_that_an_update_leaves_alone_is_not_judged_again() -> None:
    schema = fields(a={"type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('new')"}]}, b=STRING)
    assert judged(schema, {"a": "old", "b": "2"}, old={"a": "old", "b": "1"}) == []
    assert judged(schema, {"a": "older", "b": "2"}, old={"a": "old", "b": "1"}) != []


def test_null_is_not_judged_and_maps_and_lists_are_at_each_value() -> None:
    short = {"type": "string", "x-kubernetes-validations": [{"rule": "size(self) < 3"}]}
    schema = fields(
        n={**short, "nullable": True},
        m={"type": "object", "additionalProperties": short},
        l={"type": "array", "items": short},
    )
    assert [field for _, field, _ in judged(schema, {"n": None, "m": {"k": "long"}, "l": ["a", "long"]})] == [
        "spec.m[k]",
        "spec.l[1]",
    ]


def test_dates_and_durations_are_what_their_format_says() -> None:
    moment, span = {"type": "string", "format": "date-time"}, {"type": "string", "format": "duration"}
    schema = fields(
        {"rule": "self.at.all(t, t > timestamp('2026-01-01T00:00:00Z')) && self.wait < duration('1h')"},
        at={"type": "array", "items": moment},
        wait=span,
    )
    assert judged(schema, {"at": ["2026-01-02T00:00:00Z"], "wait": "59m"}) == []
    assert judged(schema, {"at": ["2025-01-02T00:00:00Z"], "wait": "59m"}) != []
    assert judged(schema, {"at": [], "wait": "61m"}) != []


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"rule": "self.a.nosuch('x')"}, "undeclared reference to 'nosuch'"),
        ({"rule": "self.a =="}, "compilation failed"),
        ({"rule": "other == 1"}, "undeclared reference to 'other'"),
        ({"rule": "has(self.b)"}, "undefined field 'b'"),
        ({"rule": "oldSelf.o.c == 1"}, "undefined field 'c'"),
        ({"rule": "now() > timestamp('2026-01-01T00:00:00Z')"}, "undeclared reference to 'now'"),
        ({"rule": " "}, "rule is not specified"),
        ({"rule": "true", "message": "a\nb"}, "must not contain line breaks"),
        ({"rule": "true", "messageExpression": "self.b"}, "undefined field 'b'"),
        ({"rule": "true", "reason": "Nope"}, 'Unsupported value: "Nope"'),
        ({"rule": "true", "fieldPath": ".b"}, "must be a valid path"),
        ({"rule": "true", "fieldPath": "b"}, "must be a valid path"),
        ({"rule": "true", "optionalOldSelf": True}, "may not be set if oldSelf is not used"),
    ],
    ids=str,
)
def test_a_rule_that_cannot_work_refuses_the_crd_and_names_itself(rule: Any, words: str) -> None:
    schema = fields(rule, a=STRING, o={"type": "object", "properties": {"x": STRING}})
    [(field, message)] = refusals(schema)
    assert field.startswith(".x-kubernetes-validations[0]")
    assert words in message


def test_a_transition_rule_in_a_list_without_keys_refuses_the_crd() -> None:
    item = {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}
    [(field, message)] = refusals(fields(l={"type": "array", "items": item}))
    assert field == ".properties[l].items.x-kubernetes-validations[0].rule"
    assert "oldSelf cannot be used" in message


def test_what_no_schema_describes_is_invisible_and_type_meta_is_always_there() -> None:
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    [(_, message)] = refusals(fields({"rule": "has(self.free.x)"}, free=free))
    assert "undefined field 'x'" in message
    root = {
        "type": "object",
        "properties": {"spec": STRING},
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'only'"}],
    }
    assert schema_causes(root, "schema", status=False) == ()
    rules = compile_rules(root)
    assert rules.judge({"metadata": {"name": "only"}}, old=None).causes == []
    assert [cause.field for cause in rules.judge({"metadata": {"name": "x"}}, old=None).causes] == ["<nil>"]


def test_a_value_that_satisfied_its_rules_is_asked_its_transitions_still() -> None:
    schema = fields({"rule": "self.n > 1"}, {"rule": "self.n >= oldSelf.n"}, n={"type": "integer"})
    rules = compiled(schema)
    assert rules.judge({"spec": {"n": 3}}, old=None).causes == []
    refused = rules.judge({"spec": {"n": 3}}, old={"spec": {"n": 4}})
    assert [cause.message for cause in refused.causes] == ["Invalid value: failed rule: self.n >= oldSelf.n"]


def test_a_rule_that_an_unchanged_value_fails_warns() -> None:
    rules = compiled(fields({"rule": "self.n > 1", "message": "small"}, n={"type": "integer"}, s=STRING))
    same = rules.judge({"spec": {"n": 0}, "a": 1}, old={"spec": {"n": 0}})
    assert (same.causes, [cause.message for cause in same.forgiven]) == ([], ["Invalid value: small"])
    changed = rules.judge({"spec": {"n": 0, "s": "x"}}, old={"spec": {"n": 0}})
    assert [cause.message for cause in changed.causes] == ["Invalid value: small"]
