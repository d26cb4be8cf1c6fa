"""Structural schemas: pruning, defaulting, validation, and what a CRD may not say."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_local.plane.schemas import Outcome, compile_validator, schema_causes


def process(spec_schema: dict[str, Any], spec: Any, *, old: Any = None) -> Outcome:
    """One object with `spec` through a CRD whose `spec` has the given schema."""
    validator = compile_validator({"type": "object", "properties": {"spec": spec_schema}})
    obj = {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
    before = copy.deepcopy(obj)
    outcome = validator.process(obj, old=None if old is None else {**obj, "spec": old})
    assert obj == before
    return outcome


def refusals(spec_schema: dict[str, Any]) -> list[tuple[str, str]]:
    causes = schema_causes({"type": "object", "properties": {"spec": spec_schema}}, "schema", status=False)
    return [(cause.field.removeprefix("schema.properties[spec]"), cause.reason) for cause in causes]


STRING = {"type": "string"}


def fields(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_unknown_fields_are_dropped_and_named_at_any_depth() -> None:
    schema = fields(
        steps={"type": "array", "items": fields(name=STRING)}, labels={"type": "object", "additionalProperties": STRING}
    )
    outcome = process(schema, {"steps": [{"name": "a", "x": 1}], "labels": {"any": "thing"}, "foo": {"bar": 1}})
    assert outcome.object["spec"] == {"steps": [{"name": "a"}], "labels": {"any": "thing"}}
    assert outcome.unknown_fields == ("spec.foo", "spec.steps[0].x")
    assert outcome.causes == ()
    assert outcome.object["metadata"] == {"name": "x"}


def test_preserved_content_stays_but_its_known_fields_are_still_judged() -> None:
    schema = {"x-kubernetes-preserve-unknown-fields": True, "type": "object", "properties": {"n": {"type": "integer"}}}
    outcome = process(schema, {"n": "one", "other": {"deep": [1]}})
    assert outcome.object["spec"] == {"n": "one", "other": {"deep": [1]}}
    assert [cause.field for cause in outcome.causes] == ["spec.n"]


def test_defaults_fill_what_is_absent_or_null_and_cascade() -> None:
    schema = fields(
        mode={"type": "string", "default": "auto"},
        nested={"type": "object", "default": {}, "properties": {"n": {"type": "integer", "default": 3}}},
        optional={"type": "object", "properties": {"n": {"type": "integer", "default": 3}}},
        keep={"type": "string", "nullable": True, "default": "d"},
        gone=STRING,
    )
    outcome = process(schema, {"mode": None, "keep": None, "gone": None})
    assert outcome.object["spec"] == {"keep": None, "mode": "auto", "nested": {"n": 3}}
    assert outcome.unknown_fields == ()


def test_a_null_for_a_required_field_counts_as_absent() -> None:
    outcome = process({**fields(name=STRING), "required": ["name"]}, {"name": None})
    assert [(cause.reason, cause.field, cause.message) for cause in outcome.causes] == [
        ("FieldValueRequired", "spec.name", "Required value")
    ]


@pytest.mark.parametrize("schema", [{"type": "number"}, {"x-kubernetes-preserve-unknown-fields": True}])
def test_a_whole_number_is_stored_without_its_point(schema: dict[str, Any]) -> None:
    stored = process(fields(size=schema), {"size": 2.0}).object["spec"]["size"]
    assert type(stored) is int
    assert stored == 2
    huge = process(fields(size=schema), {"size": 1e20}).object["spec"]["size"]
    assert type(huge) is float


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 2.0),
        ({"type": "number"}, 2),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05.678Z"),
        ({"type": "string", "format": "date-time"}, "2026-01-02T03:04:05+02:00"),
        ({"type": "string", "format": "something-new"}, "anything"),
        ({"type": "string", "maxLength": 2}, "éé"),
        ({"x-kubernetes-int-or-string": True}, "25%"),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}, 1),
        ({"x-kubernetes-preserve-unknown-fields": True}, [{"a": None}]),
    ],
    ids=str,
)
def test_a_right_value_passes_unchanged(schema: dict[str, Any], value: Any) -> None:
    outcome = process(fields(v=schema), {"v": value})
    assert outcome.causes == ()
    assert outcome.object["spec"] == {"v": value}


def test_a_pattern_does_not_match_before_a_final_newline() -> None:
    assert process(fields(v={"type": "string", "pattern": "^a$"}), {"v": "a\n"}).causes


def test_sets_and_keyed_lists_hold_no_duplicates() -> None:
    schema = fields(
        s={"type": "array", "x-kubernetes-list-type": "set", "items": STRING},
        m={
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
            "items": {
                "type": "object",
                "required": ["port"],
                "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
            },
        },
    )
    outcome = process(
        schema,
        {"s": ["a", "b", "a"], "m": [{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 1, "protocol": "TCP"}]},
    )
    assert [(cause.reason, cause.field, cause.message) for cause in outcome.causes] == [
        ("FieldValueDuplicate", "spec.s[2]", 'Duplicate value: "a"'),
        ("FieldValueDuplicate", "spec.m[2]", 'Duplicate value: {"port":1,"protocol":"TCP"}'),
    ]


def test_an_embedded_resource_keeps_its_metadata_and_needs_a_type() -> None:
    schema = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": fields(a=STRING)}}
    outcome = process(
        schema, {"apiVersion": "v1", "metadata": {"labels": {"a": "b"}}, "spec": {"a": "x", "b": 1}, "c": 1}
    )
    assert outcome.object["spec"] == {"apiVersion": "v1", "metadata": {"labels": {"a": "b"}}, "spec": {"a": "x"}}
    assert outcome.unknown_fields == ("spec.c", "spec.spec.b")
    assert [(cause.field, cause.message) for cause in outcome.causes] == [("spec.kind", "Required value")]


def test_combinators_restrict_values_and_neither_prune_nor_default() -> None:
    schema = {
        **fields(a=STRING, b=STRING, n={"type": "integer"}),
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        "not": {"properties": {"n": {"minimum": 10}}, "required": ["n"]},
        "allOf": [{"properties": {"n": {"minimum": 1}}}],
        "anyOf": [{"properties": {"a": {"enum": ["x", "y"]}}}, {"required": ["n"]}],
    }
    assert process(schema, {"a": "x"}).causes == ()
    assert process(schema, {"a": "z", "n": 2}).causes == ()
    words = [cause.message for cause in process(schema, {"a": "z", "b": "1"}).causes]
    assert any("(anyOf)" in word for word in words)
    assert any("(oneOf). Found 2" in word for word in words)
    assert "(oneOf). Found none" in process(schema, {"n": 2}).causes[0].message
    assert "(not)" in process(schema, {"a": "x", "n": 12}).causes[0].message
    assert process(schema, {"a": "x", "n": 0}).causes[0].field == "spec.n"


def test_a_fault_that_an_update_leaves_alone_is_forgiven() -> None:
    schema = fields(
        mode={"type": "string", "enum": ["a"]}, l={"type": "array", "items": {"type": "string", "maxLength": 1}}
    )
    assert process(schema, {"mode": "old", "l": ["long"]}, old={"mode": "old", "l": ["long"]}).causes == ()
    changed = process(schema, {"mode": "new", "l": ["long", "x"]}, old={"mode": "old", "l": ["long"]})
    assert [cause.field for cause in changed.causes] == ["spec.mode", "spec.l[0]"]


@pytest.mark.parametrize(
    ("schema", "refusal"),
    [
        (fields(a={}), (".properties[a].type", "FieldValueRequired")),
        (fields(a={"type": "text"}), (".properties[a].type", "FieldValueNotSupported")),
        (fields(a={"type": "array"}), (".properties[a].items", "FieldValueRequired")),
        (fields(a={"type": "string", "pattern": "(?=x)"}), (".properties[a].pattern", "FieldValueInvalid")),
        (fields(a={"type": "string", "default": 1}), (".properties[a].default", "FieldValueTypeInvalid")),
        (fields(a={**fields(b=STRING), "default": {"c": 1}}), (".properties[a].default", "FieldValueInvalid")),
        ({**fields(a=STRING), "additionalProperties": STRING}, (".additionalProperties", "FieldValueForbidden")),
        ({"type": "object", "anyOf": [{"type": "object"}]}, (".anyOf[0].type", "FieldValueForbidden")),
        (
            {"type": "object", "not": {"properties": {"a": {"default": 1}}}},
            (".not.properties[a].default", "FieldValueForbidden"),
        ),
        ({"$ref": "#/x", "type": "object"}, (".$ref", "FieldValueForbidden")),
        ({"type": "array", "items": STRING, "uniqueItems": True}, (".uniqueItems", "FieldValueForbidden")),
        (
            {"type": "array", "items": STRING, "x-kubernetes-list-type": "bag"},
            (".x-kubernetes-list-type", "FieldValueNotSupported"),
        ),
        (
            {"type": "array", "items": fields(a=STRING), "x-kubernetes-list-type": "map"},
            (".x-kubernetes-list-map-keys", "FieldValueRequired"),
        ),
        (
            {
                "type": "array",
                "items": fields(a=STRING),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            },
            (".items.properties[a].default", "FieldValueRequired"),
        ),
        (
            {
                "type": "array",
                "items": fields(a=STRING),
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["b"],
            },
            (".x-kubernetes-list-map-keys", "FieldValueInvalid"),
        ),
        ({"type": "object", "x-kubernetes-map-type": "loose"}, (".x-kubernetes-map-type", "FieldValueNotSupported")),
    ],
    ids=str,
)
def test_a_schema_that_is_not_structural_is_refused_at_its_field(
    schema: dict[str, Any], refusal: tuple[str, str]
) -> None:
    assert refusals(schema) == [refusal]


def test_the_root_must_be_an_object() -> None:
    causes = schema_causes({"type": "string"}, "schema", status=False)
    assert [(cause.field, cause.message) for cause in causes] == [
        ("schema.type", 'Invalid value: "string": must be object at the root')
    ]


leaf_schemas = st.sampled_from(
    [
        STRING,
        {"type": "integer"},
        {"type": "number"},
        {"type": "boolean"},
        {"type": "string", "enum": ["a", "b"]},
        {"type": "string", "pattern": "^[ab]+$", "maxLength": 3},
        {"type": "integer", "minimum": 0, "maximum": 5},
    ]
)
schemas = st.recursive(
    leaf_schemas,
    lambda inner: st.one_of(
        st.builds(lambda items, most: {"type": "array", "items": items, "maxItems": most}, inner, st.integers(0, 3)),
        st.builds(lambda values: {"type": "object", "additionalProperties": values}, inner),
        st.builds(
            lambda properties, needed: {
                "type": "object",
                "properties": properties,
                "required": sorted(needed & properties.keys()),
            },
            st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            st.sets(st.sampled_from("abc"), max_size=2),
        ),
    ),
    max_leaves=6,
)
documents = st.recursive(
    st.booleans() | st.integers(-2, 7) | st.sampled_from(["a", "b", "abab", ""]) | st.just(1.5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


@given(schemas, documents)
@settings(max_examples=150, deadline=None)
def test_on_generated_objects_the_verdict_is_that_of_jsonschema(schema: dict[str, Any], document: Any) -> None:
    verdict = jsonschema.Draft7Validator(schema).is_valid(document)
    assert (process(schema, document).causes == ()) is verdict


@given(schemas, documents)
@settings(max_examples=60, deadline=None)
def test_a_processed_object_is_a_fixed_point(schema: dict[str, Any], document: Any) -> None:
    once = process(schema, document).object["spec"]
    again = process(schema, once)
    assert again.object["spec"] == once
    assert again.unknown_fields == ()
