"""Who owns what after other writes, and what clients may do to `metadata.managedFields`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.things import define_things, shortly, thing
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers


def managers(answer: Answer) -> list[str]:
    return [entry["manager"] for entry in answer.body["metadata"].get("managedFields", ())]


@covers("apply", "create", "success")
async def test_a_write_owns_what_it_adds_with_the_containers(api: Api) -> None:
    things = await define_things(api)
    spec: dict[str, Any] = {"ports": [{"port": 80}], "tags": ["x"], "list": ["x"], "selector": {"a": "1"}}
    created = await api.post(things, thing(api, **spec, config={"a": "1"}, free={"x": {"y": [1]}}))
    assert created.status == 201
    assert "f:size" in created.body["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]


@covers("apply", "update", "success")
async def test_an_update_takes_what_it_changes_from_everyone_else(api: Api) -> None:
    things = await define_things(api)
    applied = await api.apply(f"{things}/a", thing(api, colour="red", config={"x": "1"}), fieldManager="one")
    body = applied.body | {"spec": {"colour": "green", "config": {"x": "1", "y": "1"}, "size": 3}}
    updated = await api.put(f"{things}/a", body, fieldManager="two")
    entries = {entry["manager"]: entry["fieldsV1"] for entry in updated.body["metadata"]["managedFields"]}
    assert entries == {
        "one": {"f:spec": {"f:config": {"f:x": {}}}},
        "two": {"f:spec": {"f:colour": {}, "f:config": {"f:y": {}}}},
    }


@covers("apply", "update", "success")
async def test_a_manager_that_owns_nothing_is_forgotten(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a", key="1"), fieldManager="one")
    changed = await api.merge(f"{path}/a", {"data": None}, fieldManager="two")
    assert managers(changed) == []


@covers("apply", "patch", "success")
async def test_an_equal_write_owns_nothing(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="1"), fieldManager="one")
    same = await api.merge(f"{path}/a", {"data": {"key": "1"}}, fieldManager="two")
    assert same.body == created.body


@covers("apply", "patch", "success")
@pytest.mark.parametrize(("resource", "field"), [("configmaps", "binaryData"), ("secrets", "data")])
async def test_nothing_in_the_place_of_no_bytes_is_a_change(api: Api, resource: str, field: str) -> None:
    path = api.path(resource)
    await api.post(path, {"metadata": {"name": "a"}, field: {"y": "AA=="}}, fieldManager="one")
    added = await api.json(f"{path}/a", [{"op": "add", "path": f"/{field}/x", "value": None}], fieldManager="two")
    assert added.body[field] == {"x": "", "y": "AA=="}
    taken = await api.json(f"{path}/a", [{"op": "replace", "path": f"/{field}/x", "value": None}], fieldManager="three")
    assert taken.body[field] == added.body[field]
    assert managers(taken) == ["one", "three"]
    again = await api.json(f"{path}/a", [{"op": "replace", "path": f"/{field}/x", "value": None}], fieldManager="three")
    assert again.body["metadata"]["resourceVersion"] != taken.body["metadata"]["resourceVersion"]
    applied = {**config_map("a"), "kind": taken.body["kind"], field: {"x": None}}
    refused = await api.apply(f"{path}/a", applied, fieldManager="four")
    assert (refused.status, refused.message) == (
        409,
        f'Apply failed with 1 conflict: conflict with "three" using v1: .{field}.x',
    )
    forced = [await api.apply(f"{path}/a", applied, fieldManager="four", force="true") for _ in range(2)]
    assert managers(forced[0]) == ["four", "one"]
    assert forced[0].body["metadata"]["resourceVersion"] != forced[1].body["metadata"]["resourceVersion"]
    said = [await api.merge(f"{path}/a", {field: {"x": ""}}, fieldManager="five") for _ in range(2)]
    assert managers(said[0]) == ["four", "one"]
    assert said[0].body["metadata"]["resourceVersion"] != forced[1].body["metadata"]["resourceVersion"]
    assert said[1].body == said[0].body


@covers("apply", "patch", "success")
@pytest.mark.parametrize(
    ("field", "empty"), [("labels", {}), ("annotations", {}), ("finalizers", []), ("ownerReferences", [])]
)
async def test_metadata_that_an_apply_left_empty_is_stored_and_read_by_nobody(
    api: Api, field: str, empty: object
) -> None:
    custom = f"{await define_things(api)}/a"
    hollow = thing(api, colour="red")
    hollow["metadata"] |= {field: empty}
    # Each write changes something: what a real server finds of a field that is stored empty, and so whether writing the
    # same again is a change, depends on whether its cache has the object yet.
    applied = await api.apply(custom, hollow, fieldManager="one")
    said = [await api.merge(custom, {"spec": {"size": size}}, fieldManager="two") for size in (1, 2)]
    assert field not in applied.body["metadata"]
    assert field not in said[1].body["metadata"]
    status = [await api.apply(f"{custom}/status", hollow | {"status": {"phase": "On"}}) for _ in range(2)]
    assert status[1].body == status[0].body

    built_in = api.path("configmaps", "a")
    typed = config_map("a", key="1")
    typed["metadata"] |= {field: empty}
    same = [await api.apply(built_in, typed, fieldManager="one") for _ in range(2)]
    assert same[1].body == same[0].body


@covers("apply", "patch", "success")
async def test_status_is_claimed_apart(api: Api) -> None:
    things = await define_things(api)
    await api.post(things, thing(api, colour="red"), fieldManager="one")
    await api.merge(f"{things}/a/status", {"status": {"phase": "On"}, "spec": {"colour": "x"}}, fieldManager="one")
    both = {**thing(api, colour="green"), "status": {"phase": "Off", "config": {"x": "1"}}}
    applied = await api.apply(f"{things}/a/status", both, fieldManager="two", force="true")
    assert (applied.body["spec"]["colour"], applied.body["status"]["phase"]) == ("red", "Off")
    main = await api.apply(f"{things}/a", both, fieldManager="three", force="true")
    assert (main.body["spec"]["colour"], main.body["status"]["phase"]) == ("green", "Off")
    dropped = await api.apply(f"{things}/a/status", thing(api), fieldManager="two")
    assert "phase" not in dropped.body.get("status", {})


@covers("apply", "apply", "refusal")
async def test_the_status_of_nothing_cannot_be_applied(api: Api) -> None:
    things = await define_things(api)
    refused = await api.apply(f"{things}/a/status", {**thing(api), "status": {"phase": "On"}})
    assert (refused.status, refused.body["reason"]) == (404, "NotFound")


@covers("apply", "update", "success")
@pytest.mark.parametrize("custom", [False, True], ids=["built-in", "custom"])
@pytest.mark.parametrize("reset", [[], [{}], None], ids=shortly)
async def test_the_record_can_be_reset(api: Api, reset: list[Any] | None, custom: bool) -> None:
    collection = await define_things(api) if custom else api.path("configmaps")
    body = thing(api, colour="red") if custom else config_map("a", key="1")
    created = await api.post(collection, body, fieldManager="one")
    metadata = created.body["metadata"] | {"managedFields": reset}
    answer = await api.put(f"{collection}/a", created.body | {"metadata": metadata}, fieldManager="two")
    assert managers(answer) == ([] if reset == [{}] or (reset == [] and not custom) else ["one"])
    label = {"metadata": {"labels": {"l": "1"}}}
    later = await api.merge(f"{collection}/a", label, fieldManager="three")
    assert ("three" in managers(later)) == bool(managers(answer))


@covers("apply", "patch", "success")
async def test_a_status_write_cannot_rewrite_the_record(api: Api) -> None:
    things = await define_things(api)
    await api.post(things, thing(api, colour="red"), fieldManager="one")
    forged = {"metadata": {"managedFields": [{}]}, "status": {"phase": "On"}}
    answer = await api.merge(f"{things}/a/status", forged, fieldManager="two")
    assert managers(answer) == ["one", "two"]


@covers("apply", "update", "success")
async def test_an_entry_can_be_handed_to_another_manager(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="1"), fieldManager="one")
    entry = created.body["metadata"]["managedFields"][0] | {"manager": "two", "operation": "Apply"}
    metadata = created.body["metadata"] | {"managedFields": [entry]}
    answer = await api.put(f"{path}/a", created.body | {"metadata": metadata}, fieldManager="one")
    assert managers(answer) == ["two"]
    left = await api.apply(f"{path}/a", config_map("a"), fieldManager="two")
    assert "data" not in left.body


@covers("apply", "update", "success")
@pytest.mark.parametrize(
    "change",
    [
        {"operation": "Guess"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV9"},
        {"fieldsV1": {"data": {}}},
        {"fieldsV1": {"k:{": {}}},
        {"fieldsV1": {"f:data": {"f:key": {}, "x:later": {}}}},
        {"fieldsV1": {"f:data": {"f:key": {".": {}}}}},
        {"fieldsV1": {}},
        {"manager": ""},
        {"apiVersion": "v9"},
        {"subresource": "status"},
        {"time": None},
    ],
    ids=shortly,
)
async def test_an_entry_that_a_client_wrote(api: Api, change: dict[str, Any]) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="1"), fieldManager="one")
    entry = created.body["metadata"]["managedFields"][0] | change
    metadata = created.body["metadata"] | {"managedFields": [entry], "labels": {"l": "1"}}
    answer = await api.put(f"{path}/a", created.body | {"metadata": metadata}, fieldManager="two")
    assert answer.status in {200, 422}


@covers("apply", "create", "success")
@pytest.mark.parametrize(
    "agent",
    ["kubectl/v1.32 (linux)", "plain", "/leading", "tool with spaces/1", "x" * 140 + "/1"],
    ids=shortly,
)
async def test_the_default_manager_is_what_the_user_agent_begins_with(api: Api, agent: str) -> None:
    path = api.path("configmaps")
    created = await api("POST", path, config_map("a", key="1"), headers={"User-Agent": agent})
    assert managers(created) == [agent.partition("/")[0][:128] or "unknown"]


@covers("apply", "create", "success")
async def test_a_creation_may_bring_entries_of_its_own(api: Api) -> None:
    fields: dict[str, Any] = {"f:data": {"f:key": {}}}
    entry = {"manager": "m", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    brought = config_map("a", key="1", other="1")
    brought["metadata"]["managedFields"] = [entry]
    created = await api.post(api.path("configmaps"), brought, fieldManager="one")
    assert created.status == 201


@covers("apply", "patch", "success")
async def test_ten_managers_of_updates_are_kept(api: Api) -> None:
    """Which are put together first depends on seconds, unless all but one are of one version and one moment."""
    path = api.path("configmaps")
    entries = [
        {
            "manager": f"m{number:02}",
            "operation": "Update",
            "apiVersion": "v1",
            "time": f"2026-01-01T00:00:{number:02}Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {f"f:k{number:02}": {}}},
        }
        for number in range(12)
    ]
    data = {f"k{number:02}": "1" for number in range(12)}
    await api.post(path, config_map("a") | {"data": data}, fieldManager="creator")
    metadata = {"managedFields": entries, "labels": {"l": "1"}}
    answer = await api.merge(f"{path}/a", {"metadata": metadata}, fieldManager="writer")
    assert managers(answer) == ["ancient-changes", *(f"m{number:02}" for number in range(4, 12)), "writer"]


@covers("apply", "update", "success")
async def test_a_claim_of_a_version_that_is_none_ends_the_record_of_a_custom_object(api: Api) -> None:
    things = await define_things(api)
    made = await api.post(things, thing(api, colour="red"), fieldManager="one")
    entry = made.body["metadata"]["managedFields"][0]
    for version in ("other.io/v1", f"{api.group}/v9"):
        claimed = {"managedFields": [entry, {**entry, "manager": "two", "apiVersion": version}]}
        changed = await api.merge(f"{things}/a", {"metadata": claimed}, fieldManager="three")
        assert managers(changed) == []
        # From then on nobody owns anything, until an apply begins anew.
        assert managers(await api.merge(f"{things}/a", {"spec": {"colour": "green"}})) == []
        await api.silent.merge(f"{things}/a", {"metadata": {"managedFields": [entry]}})
