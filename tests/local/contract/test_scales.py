"""Who owns the number of replicas after a write to the scale of an object."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.local.contract.examples import JsonObject
from tests.local.contract.manifests import manifest
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers

STATEFUL_SET = manifest("statefulsets.apps")
SIZED = {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}, "status": {"type": "object"}}


def scale(replicas: int) -> JsonObject:
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": replicas},
    }


def owners(answer: Answer) -> list[str]:
    """The managers that own the number, with the endpoint through which they speak."""
    return [
        f"{entry['manager']}/{entry.get('subresource', '')}"
        for entry in answer.body["metadata"]["managedFields"]
        if {"f:replicas", "f:size"} & entry["fieldsV1"].get("f:spec", {}).keys()
    ]


async def prepared(api: Api) -> str:
    """The path of a StatefulSet, which no controller touches here."""
    created = await api.silent.post(STATEFUL_SET.path(api), STATEFUL_SET.named("a"), fieldManager="maker")
    assert created.status == 201
    return STATEFUL_SET.path(api, "a")


async def sized(api: Api) -> str:
    """The path of a custom object with a scale."""
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
    schema = {"type": "object", "properties": SIZED}
    await api.define(api.widgets(subresources=subresources, schema={"openAPIV3Schema": schema}))
    path = api.path("widgets", group=api.group)
    assert (await api.silent.post(path, api.widget("a", size=2), fieldManager="maker")).status == 201
    return f"{path}/a"


@covers("apply", "patch", "success")
async def test_who_scales_owns_the_number_from_then_on(api: Api) -> None:
    path = await prepared(api)
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": 3}}, fieldManager="scaler")).status == 200
    assert owners(await api.get(path)) == ["scaler/scale"]
    await api.merge(f"{path}/scale", {"spec": {"replicas": 3}}, fieldManager="another")
    assert owners(await api.get(path)) == ["scaler/scale"]
    await api.put(f"{path}/scale", scale(4), fieldManager="another")
    assert owners(await api.get(path)) == ["another/scale"]
    conflict = await api.apply(path, STATEFUL_SET.named("a", spec={"replicas": 5}), fieldManager="author")
    assert conflict.status == 409


@covers("apply", "patch", "success")
async def test_a_scale_that_changes_nothing_takes_the_number_out_of_the_entry_of_its_owner(api: Api) -> None:
    path = await prepared(api)
    await api.merge(f"{path}/scale", {"spec": {"replicas": 1}}, fieldManager="scaler")
    assert owners(await api.get(path)) == ["maker/"]
    # Of two entries of one manager the next write sees one.
    await api.merge(f"{path}/scale", {"spec": {"replicas": 2}}, fieldManager="scaler")
    assert owners(await api.get(path)) == []


@covers("apply", "update", "success")
@pytest.mark.parametrize("prepare", [prepared, sized], ids=["built-in", "custom"])
async def test_a_scale_that_is_put_again_moves_no_revision(api: Api, prepare: Callable[[Api], Awaitable[str]]) -> None:
    path = await prepare(api)
    replicas = (await api.get(f"{path}/scale")).body["spec"]["replicas"]
    revisions = []
    for wanted in (replicas, replicas, replicas + 1, replicas + 1):
        await api.put(f"{path}/scale", scale(wanted), fieldManager="scaler")
        revisions.append((await api.get(path)).revision)
    assert revisions[2] == revisions[3]


@covers("apply", "apply", "conflict")
async def test_a_scale_is_applied_like_any_object(api: Api) -> None:
    path = await prepared(api)
    conflict = await api.apply(f"{path}/scale", scale(3), fieldManager="author")
    assert conflict.status == 409
    forced = await api.apply(f"{path}/scale", scale(3), fieldManager="author", force="true")
    assert forced.body["spec"] == {"replicas": 3}
    assert owners(await api.get(path)) == ["author/scale"]
    assert (await api.apply(f"{path}/scale", scale(3), fieldManager="author")).status == 200
    assert (await api.apply(f"{path}/scale", scale(3) | {"kind": "Other"}, fieldManager="author")).status == 400
    wrong = scale(3) | {"spec": {"replicas": "three"}}
    assert (await api.apply(f"{path}/scale", wrong, fieldManager="author")).status == 500
    await api.merge(f"{path}/scale", {"spec": {"replicas": 4}}, fieldManager="scaler")
    assert owners(await api.get(path)) == ["scaler/scale"]


@covers("apply", "apply", "conflict")
async def test_nobody_owns_a_number_before_the_first_scale_is_applied(api: Api) -> None:
    path = await prepared(api)
    await api.silent.merge(path, {"metadata": {"managedFields": [{}]}})
    assert (await api.apply(f"{path}/scale", scale(3), fieldManager="author")).status == 409


@covers("apply", "patch", "success")
async def test_the_number_of_a_custom_object_is_owned_where_its_definition_keeps_it(api: Api) -> None:
    path = await sized(api)
    await api.merge(f"{path}/scale", {"spec": {"replicas": 3}}, fieldManager="scaler")
    assert owners(await api.get(path)) == ["scaler/scale"]


@covers("apply", "apply", "refusal")
async def test_the_scale_of_a_custom_object_cannot_be_applied(api: Api) -> None:
    path = await sized(api)
    assert (await api.apply(f"{path}/scale", scale(3), fieldManager="author")).status == 409
    assert (await api.apply(f"{path}/scale", scale(3), fieldManager="author", force="true")).status == 500
    await api.silent.merge(path, {"metadata": {"managedFields": [{}]}})
    assert (await api.apply(f"{path}/scale", scale(3), fieldManager="author")).status == 500
