"""What a schema makes of values: pruning, defaults and every keyword, one value at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.definitions import (
    BOOLEAN,
    INT_OR_STRING,
    INTEGER,
    NUMBER,
    TEXT,
    fields,
    items,
    rule,
    store_values,
)
from tests.local.contract.wire import Api

covers = pytest.mark.covers
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}


@covers("crds", "create", "refusal")
async def test_texts_have_lengths_patterns_and_choices(api: Api) -> None:
    await store_values(
        api,
        {
            "text": {**TEXT, "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
            "one": {**TEXT, "maxLength": 1},
            "choice": {**TEXT, "enum": ["a", "b", 'c"d']},
            "number": {**INTEGER, "enum": [1, 2]},
            "any": {**PRESERVE, "enum": ["a", 1, {"x": 1}, [1], True]},
            "empty": {**TEXT, "nullable": True, "enum": ["a"]},
            "absent": {**TEXT, "nullable": True},
        },
        {
            "text": ["a", "abcdef", "ABC", "é", "abc\n", 5, True, None, ["x"], {"a": 1}, 1.5, '"q'],
            "one": ["ab"],
            "choice": ["c", "a", 1, None, 'c"d'],
            "number": [3, 1, 1.0, 1.5, "1"],
            "any": ["a", 2, {"x": 2}, {"x": 1}, [1], True, False, None],
            "empty": ["b", None, "a"],
            "absent": [None, "a", 1],
        },
    )


@covers("crds", "create", "refusal")
async def test_numbers_have_bounds_multiples_and_ranges(api: Api) -> None:
    await store_values(
        api,
        {
            "whole": {**INTEGER, "minimum": 1, "maximum": 10, "multipleOf": 2},
            "between": {**INTEGER, "minimum": 1, "maximum": 10, "exclusiveMinimum": True, "exclusiveMaximum": True},
            "small": {**INTEGER, "format": "int32"},
            "large": {**INTEGER, "format": "int64"},
            "number": {**NUMBER, "minimum": 1.5, "maximum": 2.5},
            "tenths": {**NUMBER, "multipleOf": 0.1},
            "single": {**NUMBER, "format": "float"},
            "double": {**NUMBER, "format": "double"},
            "halves": {**INTEGER, "multipleOf": 0.5},
            "cut": {**INTEGER, "maximum": 1.5},
            "million": {**NUMBER, "maximum": 1e7},
            "flag": BOOLEAN,
        },
        {
            "whole": [0, 1, 3, 11, 12, "x", 1.5, 2.0, True, None, 20, 1e20, 1e15],
            "between": [1, 10, 5],
            "small": [2147483648, -2147483649, "x", True, 1.5, 2147483647.0],
            "large": [9223372036854775807, "1", 1.5, True],
            "number": [1, 2, 3, 1.4, 2.6, "x", 2.0, 1e20],
            "tenths": [0.3, 0.35, 1, True],
            "single": [1e39, 1.5, "x", True, 1],
            "double": [1.5, True, "x", 1],
            "halves": [1, 2],
            "cut": [1, 2],
            "million": [10000001, 1e8, 123456789.5, 1e21, 1.0],
            "flag": ["true", 1, None],
        },
    )


@covers("crds", "create", "refusal")
async def test_lists_have_sizes_and_elements(api: Api) -> None:
    atomic = {**fields(x=TEXT), "x-kubernetes-map-type": "atomic"}
    keyed = {"x-kubernetes-list-type": "map"}
    await store_values(
        api,
        {
            "sized": items(TEXT, minItems=1, maxItems=2),
            "single": items(TEXT, maxItems=1),
            "nullable": items({**TEXT, "nullable": True}),
            "numbers": items(INTEGER),
            "lists": items(items(INTEGER)),
            "texts": items(TEXT, **{"x-kubernetes-list-type": "set"}),
            "doubles": items(NUMBER, **{"x-kubernetes-list-type": "set"}),
            "objects": items(atomic, **{"x-kubernetes-list-type": "set"}),
            "keyed": items(
                {**fields(k=TEXT, v=INTEGER), "required": ["k"]}, **keyed, **{"x-kubernetes-list-map-keys": ["k"]}
            ),
            "pairs": items(
                {**fields(k=TEXT, p={**INTEGER, "default": 80}), "required": ["k"]},
                **keyed,
                **{"x-kubernetes-list-map-keys": ["k", "p"]},
            ),
            "open": items({"type": "object", **PRESERVE}),
        },
        {
            "sized": [[], ["a", "b", "c"], [1], [None], "x", {"a": 1}, None],
            "single": [["a", "b"]],
            "nullable": [[None, 1]],
            "numbers": [[1, "a", 2.5]],
            "lists": [[[1], ["a"], "x"]],
            "texts": [["a", "a"], ["a", "b", "a", "a"], ["a", None]],
            "doubles": [[1, 2, 1]],
            "objects": [[{"x": "a"}, {"x": "a"}], [{"x": "a"}, {"x": "b"}]],
            "keyed": [
                [{"k": "a"}, {"k": "a"}],
                [{"v": 1}, {"v": 2}],
                [{"k": "a"}, 1],
                [None, None],
                [{"k": "a"}, {"k": "b"}, {"k": "a", "v": 2}, {"k": "a"}],
                [{"k": "a", "w": 2}],
            ],
            "pairs": [
                [{"k": "a"}, {"k": "a"}],
                [{"k": "a", "p": 1}, {"k": "a"}],
                [{"k": "a", "p": 80}, {"k": "a"}],
            ],
            "open": [[{"a": 1}], [1]],
        },
    )


@covers("crds", "create", "refusal")
async def test_objects_and_maps_keep_what_their_schema_knows(api: Api) -> None:
    await store_values(
        api,
        {
            "map": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": INTEGER},
            "one": {"type": "object", "maxProperties": 1, "additionalProperties": True},
            "none": {"type": "object", "additionalProperties": False},
            "objects": {"type": "object", "additionalProperties": fields(x=INTEGER)},
            "object": {**fields(x=TEXT, y=INTEGER), "required": ["x", "y"]},
            "filled": {**fields(x={**TEXT, "default": "q"}), "default": {}},
            "kept": {"type": "object", **PRESERVE, "properties": {"k": INTEGER}},
            "whole": {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVE},
            "anything": PRESERVE,
            "default": {**TEXT, "default": "given"},
        },
        {
            "map": [{}, {"a": 1, "b": 2, "c": 3}, {"a": "x"}, {"a": None}, [], "x", {"a.b": "x"}, {"a": {"b": 1}}],
            "one": [{"a": 1, "b": {"c": 1}}, {"a": {"c": 1}}],
            "none": [{"a": 1}, {}],
            "objects": [{"k": {"x": "a"}}, {"k": {"y": 1}}, {"k": None}, {"k": 1}],
            "object": [{"x": "a"}, {"x": None, "y": 1}, {"x": "a", "y": 1, "z": 2}, []],
            "filled": [None, {}, {"x": None}],
            "kept": [{"k": "a", "z": 1}, {"k": {"z": 1}}, 5],
            "whole": [
                {"apiVersion": "v1"},
                {"apiVersion": "v1", "kind": "a b"},
                {"kind": "X", "apiVersion": "a/b/c"},
                {"kind": "X", "apiVersion": "v1", "metadata": {"name": "a/b"}},
                {"kind": "X", "apiVersion": "v1", "metadata": {"name": "ok", "foo": 1}},
                {"kind": "X", "apiVersion": "v1", "spec": {"x": 1}},
            ],
            "anything": [1, "a", None, {"a": [1]}],
            "default": [None, "x", 1],
            "unknown": [1, {"a": 1}],
        },
    )


@covers("crds", "create", "refusal")
async def test_junctors_restrict_what_is_typed_beside_them(api: Api) -> None:
    await store_values(
        api,
        {
            "any": {**TEXT, "anyOf": [{"minLength": 3}, {"pattern": "^x"}]},
            "one": {**INTEGER, "oneOf": [{"minimum": 5}, {"maximum": 7}]},
            "all": {**TEXT, "allOf": [{"minLength": 3}, {"pattern": "^x"}]},
            "none": {**TEXT, "not": {"pattern": "^x"}},
            "shapes": {
                **fields(x=TEXT, y=INTEGER, z=TEXT),
                "anyOf": [{"required": ["x"]}, {"required": ["y", "z"], "properties": {"y": {"minimum": 3}}}],
            },
            "either": {**fields(x=TEXT, y=INTEGER), "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
            "port": INT_OR_STRING,
            "percent": {
                **INT_OR_STRING,
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "pattern": "^[0-9]+%$",
                "minimum": 5,
            },
        },
        {
            "any": ["ab", "abc", "x", "y"],
            "one": [6, 4, 8],
            "all": ["x", "ab", "abc", "xab"],
            "none": ["x", "y"],
            "shapes": [{}, {"y": 1}, {"y": 1, "z": "a"}, {"x": "a"}],
            "either": [{}, {"x": "a", "y": 1}, {"x": "a"}, {"y": 1}],
            "port": [1, "a", True, 1.5, None, {"a": 1}, 1.0],
            "percent": ["5%", "x", 3, 6, True],
        },
    )


FORMATS: dict[str, list[Any]] = {
    "date": ["2020-01-01", "2020-13-01", "20200101", "x", 5, {"a": 1}, True],
    "date-time": [
        *("2020-01-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01T24:00:00Z", "2020-01-01"),
        *("2020-01-01T00:00:00", "2020-01-01T00:00:00.123+01:00", "2020-01-01 00:00:00Z"),
    ],
    "duration": ["1h", "1h30m", "22 days", "x", "-1.5s", "1d", "0", "1 s", "5"],
    "email": ["a@b", "a", "a@b.c", "A <a@b.c>", "a b@c", "@b"],
    "hostname": ["a", "a.b", "a_b", "-a", "a.", "A.com", "1.2", "x" * 64, "a..b"],
    "ipv4": ["1.2.3.4", "1.2.3", "01.2.3.4", "::ffff:1.2.3.4", "1.2.3.256", "a"],
    "ipv6": ["::1", "1.2.3.4", "fe80::1%eth0", "x", "1:2"],
    "cidr": ["1.2.3.0/24", "1.2.3.4/24", "1.2.3.4", "::/0", "1.2.3.4/33", "01.2.3.4/8"],
    "uri": ["http://a", "a", "/a", "a:b", "http://a b", "http://a/%zz", "mailto:x@y", "//a", "http://"],
    "uuid": ["123e4567-e89b-12d3-a456-42661417400x", "123E4567E89B12D3A456426614174000", "x"],
    "uuid3": ["x"],
    "uuid4": ["x"],
    "uuid5": ["x"],
    "byte": ["YWJj", "YWI=", "YWI", "a b", ""],
    "mac": ["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "00:11:22:33:44"],
    "isbn": ["0321751043", "978-0321751041", "x"],
    "isbn10": ["0321751043", "0321751044"],
    "isbn13": ["978-0321751041", "978-0321751042"],
    "creditcard": ["4111111111111111", "4111111111111112", "4111-1111-1111-1111"],
    "ssn": ["111-22-3333", "111 22 3333", "x"],
    "hexcolor": ["#FFF", "#FFFFFF", "FFF", "#FFFF"],
    "rgbcolor": ["rgb(255,255,255)", "rgb(256,1,1)", "rgb( 1 , 2 , 3 )"],
    "password": ["x"],
    "bsonobjectid": ["507f1f77bcf86cd799439011", "x"],
    "k8s-short-name": ["a", "A", "a.b", "x" * 64],
    "k8s-long-name": ["a", "A", "a.b", "x" * 254],
    "nothing-known": ["x", 5],
}


@covers("crds", "create", "refusal")
async def test_formats_are_the_servers_dialects(api: Api) -> None:
    await store_values(api, {name: {**TEXT, "format": name} for name in FORMATS}, FORMATS)


@covers("crds", "create", "refusal")
async def test_rules_are_not_asked_about_an_object_that_is_broken(api: Api) -> None:
    properties = {
        "title": {**TEXT, "maxLength": 10, **rule("self != 'bad'", message="is bad")},
        "pair": {**fields(a=INTEGER, b=INTEGER), **rule("self.a < self.b", message="a is below b")},
        "size": {**INTEGER, "minimum": 3},
    }
    values: dict[str, list[Any]] = {
        "title": ["bad", "good", "muchtoolong"],
        "pair": [{"a": 2, "b": 1}, {"a": 1}, {"a": 1, "b": 2}, {"a": "x", "b": 1}],
    }
    await store_values(api, properties, values)
    path = api.path("widgets", group=api.group)
    both = await api.post(path, api.widget("a", title="bad", size=1))
    assert {cause[1] for cause in both.causes} == {"spec.title", "spec.size"}
