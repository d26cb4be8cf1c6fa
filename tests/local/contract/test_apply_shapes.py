"""Server-side apply over lists and maps of every kind, over nulls, empty containers and defaults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.definitions import definition, schema_of
from tests.local.contract.examples import config_map, deployment
from tests.local.contract.things import define_things, shortly, thing
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("apply", "apply", "success")
async def test_elements_of_a_keyed_list_come_and_go_with_their_managers(api: Api) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, ports=[{"port": 1, "name": "one"}, {"port": 2}]), fieldManager="one")
    await api.apply(path, thing(api, ports=[{"port": 3}, {"port": 2, "protocol": "UDP"}]), fieldManager="two")
    left = await api.apply(path, thing(api, ports=[{"port": 2, "name": "zwei"}]), fieldManager="one")
    assert [(port["port"], port["protocol"]) for port in left.body["spec"]["ports"]] == [
        (2, "TCP"),
        (3, "TCP"),
        (2, "UDP"),
    ]


@covers("apply", "apply", "success")
@pytest.mark.parametrize(
    ("live", "wanted"),
    [([1, 2, 3], [2, 1]), ([3, 2, 1], [1, 3]), ([1, 2], [9, 2]), ([1, 2], [2, 9]), ([1, 2, 3, 4], [4, 9, 2])],
    ids=shortly,
)
async def test_applied_elements_keep_their_order_and_others_their_neighbours(
    api: Api, live: list[int], wanted: list[int]
) -> None:
    things = await define_things(api)
    await api.post(things, thing(api, ports=[{"port": number} for number in live]))
    merged = await api.apply(f"{things}/a", thing(api, ports=[{"port": number} for number in wanted]))
    assert {port["port"] for port in merged.body["spec"]["ports"]} == {*live, *wanted}


@covers("apply", "apply", "success")
async def test_an_element_goes_although_somebody_else_owns_a_field_in_it(api: Api) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, ports=[{"port": 1}, {"port": 2}]))
    await api.json(path, [{"op": "add", "path": "/spec/ports/0/name", "value": "theirs"}], fieldManager="writer")
    left = await api.apply(path, thing(api, ports=[{"port": 2}]))
    assert [port["port"] for port in left.body["spec"]["ports"]] == [2]


@covers("apply", "apply", "success")
async def test_members_of_a_set_are_owned_one_by_one(api: Api) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, tags=["x", "y"]), fieldManager="one")
    await api.apply(path, thing(api, tags=["y", "z"]), fieldManager="two")
    left = await api.apply(path, thing(api, tags=["w"]), fieldManager="one")
    assert sorted(left.body["spec"]["tags"]) == ["w", "y", "z"]


@covers("apply", "apply", "conflict")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"list": ["x"]}, {"list": ["x", "y"]}),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "1"}}),
        ({"free": {"l": [{"name": "a"}]}}, {"free": {"l": [{"name": "b"}]}}),
        ({"share": 1}, {"share": "1"}),
        ({"note": "x"}, {"note": None}),
    ],
    ids=["list", "map", "preserved", "int-or-string", "null"],
)
async def test_an_atomic_value_is_owned_whole(api: Api, first: dict[str, Any], second: dict[str, Any]) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, **first), fieldManager="one")
    refused = await api.apply(path, thing(api, **second), fieldManager="two")
    assert refused.status == 409
    forced = await api.apply(path, thing(api, **second), fieldManager="two", force=True)
    (field,) = second
    assert forced.body["spec"][field] == second[field]


@covers("apply", "apply", "success")
async def test_a_granular_map_is_shared_entry_by_entry_at_any_depth(api: Api) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, config={"a": "1"}, free={"x": {"y": 1}}), fieldManager="one")
    shared = await api.apply(path, thing(api, config={"b": "1"}, free={"x": {"z": 1}}), fieldManager="two")
    assert shared.body["spec"]["config"] == {"a": "1", "b": "1"}
    left = await api.apply(path, thing(api, config={"b": "1"}), fieldManager="two")
    assert left.body["spec"]["free"] == {"x": {"y": 1}}


@covers("apply", "apply", "refusal")
@pytest.mark.parametrize(
    "emptied",
    [{"config": {}}, {"ports": []}, {"tags": []}, {"selector": {}}, {"list": []}, {"free": {}}],
    ids=lambda spec: next(iter(spec)),
)
async def test_a_container_that_is_applied_empty_after_it_was_full(api: Api, emptied: dict[str, Any]) -> None:
    path = f"{await define_things(api)}/a"
    full = {
        "config": {"x": "1"},
        "ports": [{"port": 1}],
        "tags": ["x"],
        "selector": {"x": "1"},
        "list": ["x"],
        "free": {"x": {"y": 1}},
    }
    await api.apply(path, thing(api, colour="red", **full))
    answer = await api.apply(path, thing(api, colour="red", **(full | emptied)))
    assert answer.status in {200, 422}


@covers("apply", "apply", "success")
@pytest.mark.parametrize(
    "spec",
    [{"config": None}, {"size": None}, {"note": None}, {"ports": None}, {"colour": None}, {"free": {"x": None}}],
    ids=lambda spec: next(iter(spec)),
)
async def test_null_in_a_configuration(api: Api, spec: dict[str, Any]) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, **spec))
    await api.apply(path, thing(api, config={"x": "1"}, size=1, note="n", ports=[{"port": 1}], colour="red"))
    await api.apply(path, thing(api, **spec))


@covers("apply", "apply", "success")
@pytest.mark.parametrize(
    "metadata", [{"labels": {}}, {"annotations": {}}, {"finalizers": []}, {"labels": None}], ids=shortly
)
async def test_empty_metadata_in_a_configuration(api: Api, metadata: dict[str, Any]) -> None:
    things = await define_things(api)
    for path, body in ((f"{things}/a", thing(api, colour="red")), (f"{api.path('configmaps')}/a", config_map("a"))):
        applied = await api.apply(path, body | {"metadata": {"name": "a", **metadata}})
        assert applied.status == 201


@covers("apply", "apply", "success")
async def test_defaults_are_nobodys_until_they_are_applied(api: Api) -> None:
    path = f"{await define_things(api)}/a"
    await api.apply(path, thing(api, colour="red"), fieldManager="one")
    changed = await api.apply(path, thing(api, size=5), fieldManager="two")
    assert changed.body["spec"] == {"colour": "red", "size": 5}
    left = await api.apply(path, thing(api), fieldManager="two")
    assert left.body["spec"] == {"colour": "red", "size": 3}


@covers("apply", "apply", "success")
async def test_quantities_and_ports_are_written_in_more_than_one_way(api: Api) -> None:
    path = f"{api.path('deployments', group='apps')}/a"
    body = deployment("a", paused=True)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": 1, "memory": "1024Mi"}}
    container["ports"] = [{"containerPort": 80}]
    applied = await api.apply(path, body, fieldManager="one")
    found = applied.body["spec"]["template"]["spec"]["containers"][0]
    assert found["resources"]["requests"]["cpu"] == "1"
    container["resources"]["requests"]["cpu"] = "1000m"
    # Its controller has begun to report meanwhile.
    again = await api.silent.apply(path, body, fieldManager="one")
    assert again.body["spec"] == applied.body["spec"]


@covers("apply", "apply", "success")
async def test_a_null_in_a_field_of_any_type_is_owned_and_reads_as_absent(api: Api) -> None:
    free = {"x-kubernetes-preserve-unknown-fields": True}
    await api.define(
        definition(api, schema_of(free=free, filled={**free, "default": "x"}, kept={**free, "nullable": True}))
    )
    path = api.path("widgets", "a", group=api.group)
    applied = api.widget("a", free=None, filled=None, kept=None)
    created = await api.apply(path, applied)
    assert created.body["spec"] == {"filled": "x", "kept": None}
    again = await api.apply(path, applied)
    assert again.body["metadata"]["generation"] == 2
    assert (await api.get(path)).body == again.body
    changed = await api.apply(path, api.widget("a", free={"deep": None}, filled="y"))
    assert changed.body["spec"] == {"free": {"deep": None}, "filled": "y"}
