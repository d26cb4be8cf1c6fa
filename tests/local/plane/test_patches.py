"""JSON patch, merge patch and strategic merge as pure functions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_local.plane.errors import PatchError
from kardinal_local.plane.patches.generic import merge_patch
from kardinal_local.plane.patches.operations import json_patch
from kardinal_local.plane.patches.strategic import strategic_merge

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1, max_size=1), inner, max_size=3)
    ),
    max_leaves=8,
)
objects = st.dictionaries(st.text("abc", min_size=1, max_size=1), values, max_size=3)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def without_nulls_in_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls_in_lists(item) for key, item in value.items()}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@given(objects, objects.map(without_nulls_in_lists))
@settings(max_examples=60, deadline=None)
def test_a_merge_patch_applied_twice_equals_once_and_changes_no_argument(obj: Any, patch: Any) -> None:
    before = copy.deepcopy((obj, patch))
    once = merge_patch(obj, patch)
    assert merge_patch(once, patch) == once
    assert (obj, patch) == before


@given(objects)
@settings(max_examples=40, deadline=None)
def test_a_merge_patch_on_nothing_is_the_patch_without_nulls(patch: Any) -> None:
    assert merge_patch({}, patch) == without_nulls(patch)


def test_a_merge_patch_removes_with_null_and_replaces_lists() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "l": [1, 2]}, {"a": {"b": None, "d": 3}, "l": [3]}) == {
        "a": {"c": 2, "d": 3},
        "l": [3],
    }


def test_json_patch_applies_all_operations_in_order_without_touching_the_object() -> None:
    obj = {"metadata": {"labels": {"a": "1"}}, "spec": {"l": [1, 2]}}
    before = copy.deepcopy(obj)
    result = json_patch(
        obj,
        [
            {"op": "test", "path": "/metadata/labels/a", "value": "1"},
            {"op": "add", "path": "/metadata/labels/kardinal.io~1shard", "value": "eu"},
            {"op": "remove", "path": "/spec/l/0"},
            {"op": "add", "path": "/spec/l/-", "value": 3},
        ],
    )
    assert result == {"metadata": {"labels": {"a": "1", "kardinal.io/shard": "eu"}}, "spec": {"l": [2, 3]}}
    assert obj == before


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "test", "path": "/x/y", "value": 2}],
        [{"op": "remove", "path": "/missing"}],
        [{"op": "insert", "path": "/a", "value": 1}],
        [{"op": "add", "value": 1}],
        [{"op": "add", "path": "a", "value": 1}],
        [{"op": "copy", "path": "/a"}],
        [{"path": "/a", "value": 1}],
        [{"op": "remove", "path": "/l/-3"}],
        [{"op": "add", "path": "/no/parent", "value": 1}],
        [{"op": "add", "path": "/a/b", "value": 1}],
        [{"op": "add", "path": "/l/9", "value": 1}],
        [{"op": "replace", "path": "", "value": 1}],
        [{"op": "move", "from": "/nowhere", "path": "/b"}],
    ],
    ids=str,
)
def test_a_json_patch_that_does_not_apply_is_422_invalid(operations: list[Any]) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({"a": 1, "l": []}, operations)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")


@pytest.mark.parametrize(
    "operations",
    [
        {"op": "add"},
        ["add"],
        [{"op": ["add"], "path": "/a"}],
        "add",
        [{"op": "add", "path": 3, "value": 1}],
    ],
    ids=str,
)
def test_a_json_patch_that_cannot_be_read_is_400(operations: Any) -> None:
    with pytest.raises(PatchError) as refused:
        json_patch({"a": 1}, operations)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "replace", "path": "/missing", "value": 1}, {"a": 1, "l": [1, 2], "missing": 1}),
        ({"op": "copy", "from": "/missing", "path": "/a"}, {"a": None, "l": [1, 2]}),
        ({"op": "add", "path": "/a"}, {"a": None, "l": [1, 2]}),
        ({"op": "add", "path": "/l/-1", "value": 3}, {"a": 1, "l": [1, 2, 3]}),
        ({"op": "remove", "path": "/l/-1"}, {"a": 1, "l": [1]}),
        ({"op": "test", "path": "/missing", "value": None}, {"a": 1, "l": [1, 2]}),
        ({"op": "replace", "path": "", "value": [1]}, [1]),
    ],
    ids=str,
)
def test_a_json_patch_is_as_lenient_as_on_a_cluster(operation: Any, result: Any) -> None:
    assert json_patch({"a": 1, "l": [1, 2]}, [operation]) == result


CONTAINERS = {
    "type": "array",
    "x-kubernetes-patch-strategy": "merge",
    "x-kubernetes-patch-merge-key": "name",
    "items": {
        "type": "object",
        "properties": {
            "env": {
                "type": "array",
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
                "items": {"type": "object"},
            },
            "args": {"type": "array", "items": {"type": "string"}},
        },
    },
}
SCHEMA = {
    "properties": {
        "spec": {
            "properties": {
                "containers": CONTAINERS,
                "finalizers": {"type": "array", "x-kubernetes-patch-strategy": "merge", "items": {"type": "string"}},
                "strategy": {"type": "object", "x-kubernetes-patch-strategy": "retainKeys"},
            }
        }
    }
}


def merged(spec: Any, patch: Any) -> Any:
    before = copy.deepcopy((spec, patch))
    result = strategic_merge({"spec": spec}, {"spec": patch}, schema=SCHEMA)["spec"]
    assert (spec, patch) == before
    return result


def test_keyed_lists_merge_by_key_and_atomic_lists_are_replaced() -> None:
    spec = {
        "containers": [
            {"name": "app", "image": "a:1", "args": ["x"], "env": [{"name": "A", "value": "1"}]},
            {"name": "side"},
        ]
    }
    patch = {"containers": [{"name": "app", "image": "a:2", "args": ["y"], "env": [{"name": "B", "value": "2"}]}]}
    assert merged(spec, patch) == {
        "containers": [
            {
                "name": "app",
                "image": "a:2",
                "args": ["y"],
                "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}],
            },
            {"name": "side"},
        ]
    }


def test_an_element_is_deleted_and_a_list_replaced_by_directive() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    assert merged(spec, {"containers": [{"name": "a", "$patch": "delete"}]}) == {"containers": [{"name": "b"}]}
    assert merged(spec, {"containers": [{"name": "c"}, {"$patch": "replace"}]}) == {"containers": [{"name": "c"}]}


def test_objects_are_replaced_emptied_and_narrowed_by_directive() -> None:
    spec = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}
    assert merged(spec, {"strategy": {"$patch": "replace", "type": "Recreate"}}) == {"strategy": {"type": "Recreate"}}
    assert merged(spec, {"strategy": {"$patch": "delete"}}) == {"strategy": {}}
    assert merged(spec, {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}) == {
        "strategy": {"type": "Recreate"}
    }


def test_scalar_lists_are_a_union_and_lose_named_elements() -> None:
    assert merged({"finalizers": ["a", "b"]}, {"finalizers": ["b", "c"]}) == {"finalizers": ["a", "b", "c"]}
    assert merged({"finalizers": ["a"]}, {"finalizers": ["c"]}) == {"finalizers": ["c", "a"]}
    assert merged({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}) == {"finalizers": ["b"]}


def test_the_client_orders_its_elements_and_the_servers_own_keep_their_place() -> None:
    spec = {"containers": [{"name": "injected"}, {"name": "a"}, {"name": "mid"}, {"name": "b"}]}
    patch = {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}, {"name": "new"}],
        "containers": [{"name": "new"}],
    }
    names = [item["name"] for item in merged(spec, patch)["containers"]]
    assert sorted(names) == ["a", "b", "injected", "mid", "new"]
    assert [name for name in names if name in {"a", "b", "new"}] == ["b", "a", "new"]
    assert names.index("injected") == 0


def test_an_order_alone_reorders_without_a_change_of_elements() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}]}
    patch = {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}
    assert merged(spec, patch) == {"containers": [{"name": "b"}, {"name": "a"}]}


def test_finalizers_and_owners_merge_in_every_kind() -> None:
    owner = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "1"}
    live = {"metadata": {"finalizers": ["a"], "ownerReferences": [owner]}}
    patch = {"metadata": {"finalizers": ["b"], "ownerReferences": [{"uid": "1", "$patch": "delete"}]}}
    merged = strategic_merge(live, patch, schema={"type": "object"})
    assert merged == {"metadata": {"finalizers": ["b", "a"], "ownerReferences": []}}


def test_without_a_schema_lists_are_replaced_and_null_removes() -> None:
    assert strategic_merge({"a": [1], "b": 1}, {"a": [2], "b": None, "c": {"d": None}}, schema=None) == {
        "a": [2],
        "c": {},
    }
