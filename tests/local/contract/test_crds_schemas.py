"""Which schemas a definition may hold: structural ones, whose lists, defaults and patterns make sense."""

from __future__ import annotations

import pytest

from tests.local.contract.definitions import (
    INT_OR_STRING,
    INTEGER,
    TEXT,
    definition,
    fields,
    items,
    rule,
    schema_of,
    try_definition,
)
from tests.local.contract.examples import JsonObject
from tests.local.contract.wire import Api

covers = pytest.mark.covers
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"x-kubernetes-embedded-resource": True}
BOTH = [{"type": "integer"}, {"type": "string"}]


def list_type(name: str, *keys: str) -> JsonObject:
    return {"x-kubernetes-list-type": name} | ({"x-kubernetes-list-map-keys": list(keys)} if keys else {})


async def try_schemas(api: Api, schemas: list[JsonObject], *, good: int = 0) -> None:
    """Try each schema; the last `good` of them are accepted."""
    for index, schema in enumerate(schemas):
        answer = await try_definition(api, definition(api, schema))
        assert answer.status == (201 if index >= len(schemas) - good else 422), answer.body


@covers("crds", "create", "refusal")
async def test_every_field_has_a_type(api: Api) -> None:
    await try_schemas(
        api,
        [
            schema_of(a={}),
            schema_of(a=items({})),
            {"properties": {"spec": fields(a=TEXT)}},
            {"type": "array"},
            {"type": "object", "additionalProperties": TEXT},
            {**schema_of(a=TEXT), "nullable": True},
            schema_of(a={"type": "array"}),
            schema_of(a={"type": "objects"}),
            schema_of(a={"type": "null"}),
            schema_of(a=items(TEXT) | {"items": [TEXT]}),
            schema_of(a={**fields(x=TEXT), "additionalProperties": TEXT}),
            schema_of(a={**PRESERVE, "type": "object", "x-kubernetes-preserve-unknown-fields": False}),
            schema_of(a={**INT_OR_STRING, **PRESERVE}),
            schema_of(a={**INT_OR_STRING, "anyOf": BOTH[::-1]}),
            schema_of(a=EMBEDDED),
            schema_of(a={"type": "string", **EMBEDDED}),
            schema_of(a={"type": "object", **EMBEDDED, "additionalProperties": TEXT}),
            schema_of(a=PRESERVE),
            schema_of(a={**fields(x=TEXT), "additionalProperties": True}),
            schema_of(a={"type": "object", "additionalProperties": False}),
            schema_of(a={**INT_OR_STRING, "anyOf": BOTH}, b={**INT_OR_STRING, "allOf": [{"anyOf": BOTH}]}),
            schema_of(a={"type": "object", **EMBEDDED, **PRESERVE}),
        ],
        good=5,
    )


@covers("crds", "create", "refusal")
async def test_junctors_hide_nothing(api: Api) -> None:
    hidden = {"type": "string", "default": "x", "title": "t", "description": "d", "nullable": True}
    extensions = {
        **PRESERVE,
        **INT_OR_STRING,
        **EMBEDDED,
        **list_type("set", "a"),
        "x-kubernetes-map-type": "atomic",
        **rule("true"),
    }
    nameless = {"properties": {"b": {"minLength": 1}}}
    deeper = {"properties": {"spec": {"properties": {"c": {"minLength": 1}}}}}
    await try_schemas(
        api,
        [
            schema_of(a={**TEXT, "anyOf": [{"type": "string"}, {"minLength": 1}]}),
            schema_of(a={**fields(x=TEXT), "anyOf": [{"properties": {"x": hidden}}]}),
            schema_of(a={**fields(x=TEXT), "oneOf": [extensions]}),
            schema_of(a={**fields(x=TEXT), "not": {"additionalProperties": TEXT}}),
            schema_of(a={**fields(x=TEXT), "not": {"additionalProperties": True}}),
            {**fields(metadata={"type": "object"}), "anyOf": [{"properties": {"metadata": {"required": ["name"]}}}]},
            {**schema_of(a=TEXT), "anyOf": [nameless, deeper, {"items": {"minLength": 1}}]},
            schema_of(a={**fields(x=TEXT), "anyOf": [{"properties": {"b": {"minLength": 1}}}]}),
        ],
        good=1,
    )


@covers("crds", "create", "refusal")
async def test_the_metadata_of_an_object_is_the_servers(api: Api) -> None:
    await try_schemas(
        api,
        [
            fields(metadata=TEXT, kind=INTEGER, apiVersion=INTEGER),
            fields(metadata=fields(name=TEXT, labels=fields(a=TEXT))),
            fields(metadata=fields(name={**TEXT, "default": "x"})),
            fields(kind={**TEXT, "default": "x"}),
            fields(metadata=fields(name={**TEXT, "maxLength": 5})),
        ],
        good=1,
    )


@covers("crds", "create", "refusal")
async def test_patterns_are_regular_expressions(api: Api) -> None:
    patterns = ["(", "a{1,2000}", "(?=x)", "[z-a]", "*a", "[", "a**", "\\"]
    await try_schemas(api, [schema_of(a={**TEXT, "pattern": pattern}) for pattern in patterns])


@covers("crds", "create", "refusal")
async def test_some_keywords_are_not_supported(api: Api) -> None:
    await try_schemas(
        api,
        [
            schema_of(a=items(TEXT, uniqueItems=True)),
            schema_of(a={"$ref": "#/x"}),
            schema_of(a={**TEXT, "definitions": {"x": TEXT}}),
            schema_of(a={"type": "object", "patternProperties": {"x": TEXT}}),
            schema_of(a={"type": "object", "dependencies": {"x": ["y"]}}),
            schema_of(a={**TEXT, "id": "x"}),
            schema_of(a={**TEXT, "$schema": "x"}),
            schema_of(a=items(TEXT, additionalItems=False)),
        ],
    )


@covers("crds", "create", "refusal")
async def test_lists_say_how_their_elements_are_told_apart(api: Api) -> None:
    keyed = {**fields(x=TEXT), "required": ["x"]}
    atomic = {**fields(x=TEXT), "x-kubernetes-map-type": "atomic"}
    await try_schemas(
        api,
        [
            schema_of(a={**TEXT, "x-kubernetes-map-type": "atomic"}),
            schema_of(a={**PRESERVE, "x-kubernetes-map-type": "atomic"}),
            schema_of(a={"type": "object", "x-kubernetes-map-type": "foo"}),
            schema_of(a={**TEXT, **list_type("atomic")}),
            schema_of(a={**PRESERVE, **list_type("atomic")}),
            schema_of(a=items(TEXT, **list_type("foo"))),
            schema_of(a=items(fields(x=TEXT), **list_type("set"))),
            schema_of(a=items(items(TEXT, **list_type("set")), **list_type("set"))),
            schema_of(a=items({**TEXT, "nullable": True}, **list_type("set"))),
            schema_of(a=items(fields(x=TEXT), **list_type("map"))),
            schema_of(a=items(TEXT, **list_type("map", "x"))),
            schema_of(a={"type": "array", **list_type("map", "x")}),
            schema_of(a=items({**fields(x=TEXT), "required": ["y"]}, **list_type("map", "y"))),
            schema_of(a=items(keyed, **list_type("map", "x", "x"))),
            schema_of(a=items(fields(x=TEXT), **list_type("map", "x"))),
            schema_of(a=items({**fields(x={**TEXT, "nullable": True}), "required": ["x"]}, **list_type("map", "x"))),
            schema_of(a=items({**fields(x=fields(y=TEXT)), "required": ["x"]}, **list_type("map", "x"))),
            schema_of(a=items({**keyed, "nullable": True}, **list_type("map", "x"))),
            schema_of(a=items(fields(x=TEXT), **{"x-kubernetes-list-map-keys": ["x"]})),
            schema_of(a=items(atomic, **list_type("set", "x"))),
            schema_of(a=items(atomic, **list_type("set"))),
            schema_of(a=items(items(TEXT), **list_type("set"))),
        ],
        good=2,
    )


@covers("crds", "create", "refusal")
async def test_defaults_satisfy_their_schemas(api: Api) -> None:
    keyed = items({**fields(x=TEXT), "required": ["x"]}, **list_type("map", "x"))
    await try_schemas(
        api,
        [
            schema_of(a={**INTEGER, "default": "x"}),
            schema_of(a={**TEXT, "default": 1}),
            schema_of(a={**fields(x=TEXT), "default": {"x": 1}}),
            schema_of(a={**fields(x=TEXT), "default": {"y": 1}}),
            schema_of(a=items(TEXT, default=["a", 1])),
            schema_of(a={**TEXT, "default": "abc", "maxLength": 2}),
            schema_of(a={**INTEGER, "default": 1, "minimum": 2}),
            schema_of(a={**TEXT, "default": "b", "enum": ["a"]}),
            schema_of(a={**TEXT, "default": "x", "format": "date"}),
            schema_of(a={**fields(x=TEXT), "required": ["x"], "default": {}}),
            schema_of(a={**TEXT, "maxLength": 5, "default": "x", **rule("self != 'x'")}),
            schema_of(a={**TEXT, "default": "x", "anyOf": [{"minLength": 3}, {"pattern": "^y"}]}),
            schema_of(a={"type": "object", **EMBEDDED, **PRESERVE, "default": {"kind": "X"}}),
            schema_of(a={**fields(x={**TEXT, "default": "q"}), "required": ["x"], "default": {}}),
            schema_of(a={**TEXT, "default": None}),
            schema_of(a={"type": "object", "additionalProperties": {**TEXT, "default": "x"}}),
            schema_of(a={**keyed, "default": [{"x": "a"}, {"x": "a"}]}),
        ],
        good=3,
    )
