"""Server-side apply: creating, sharing, conflicting, taking over, giving up."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.things import define_things, thing
from tests.local.contract.wire import Answer, Api

covers = pytest.mark.covers

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def owned(answer: Answer) -> dict[str, Any]:
    """Who owns what, by manager."""
    return {entry["manager"]: entry["fieldsV1"] for entry in answer.body["metadata"]["managedFields"]}


@covers("apply", "apply", "success")
async def test_an_apply_creates_what_is_not_there_and_claims_what_it_names(api: Api) -> None:
    things = await define_things(api)
    created = await api.apply(f"{things}/a", thing(api, colour="red", ports=[{"port": 80}], tags=["x"]))
    assert created.status == 201
    assert created.body["spec"]["size"] == 3
    assert owned(created) == {
        "tester": {
            "f:spec": {
                "f:colour": {},
                "f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}},
                "f:tags": {'v:"x"': {}},
            }
        }
    }
    assert (await api.get(f"{things}/a")).body == created.body


@covers("apply", "apply", "success")
async def test_applying_the_same_again_is_no_write(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    first = await api.apply(path, config_map("a", key="value"))
    again = await api.apply(path, config_map("a", key="value"))
    assert (again.status, again.body) == (200, first.body)


@covers("apply", "apply", "success")
async def test_a_configuration_may_be_yaml(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    text = (
        b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  one: 'yes'\n  two: |\n    lines\n    more\n"
    )
    applied = await api.apply(path, text)
    assert applied.body["data"] == {"one": "yes", "two": "lines\nmore\n"}


@covers("apply", "apply", "success")
async def test_equal_values_are_shared_without_force(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.apply(path, config_map("a", key="value", other="1"), fieldManager="one")
    shared = await api.apply(path, config_map("a", key="value"), fieldManager="two")
    assert owned(shared)["two"] == {"f:data": {"f:key": {}}}
    left = await api.apply(path, config_map("a", other="1"), fieldManager="one")
    assert left.body["data"] == {"key": "value", "other": "1"}


@covers("apply", "apply", "conflict")
async def test_a_conflict_names_the_manager_and_the_field(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.apply(path, config_map("a", key="1"), fieldManager="one")
    refused = await api.apply(path, config_map("a", key="2"), fieldManager="two")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    assert refused.message == 'Apply failed with 1 conflict: conflict with "one": .data.key'
    assert refused.causes == [("FieldManagerConflict", ".data.key")]


@covers("apply", "apply", "conflict")
async def test_conflicts_are_told_together(api: Api) -> None:
    things = await define_things(api)
    spec: dict[str, Any] = {"colour": "red", "ports": [{"port": 80, "name": "web"}], "config": {"z": "1", "a": "1"}}
    await api.apply(f"{things}/a", thing(api, **spec), fieldManager="one")
    spec = {"colour": "green", "ports": [{"port": 80, "name": "www"}], "config": {"z": "2", "a": "2"}}
    refused = await api.apply(f"{things}/a", thing(api, **spec), fieldManager="two")
    assert refused.message == (
        'Apply failed with 4 conflicts: conflicts with "one":\n'
        "- .spec.colour\n- .spec.config.a\n- .spec.config.z\n"
        '- .spec.ports[port=80,protocol="TCP"].name'
    )


@covers("apply", "apply", "conflict")
async def test_a_conflict_with_an_update_names_its_version(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a", key="1"), fieldManager="writer")
    refused = await api.apply(f"{path}/a", config_map("a", key="2"))
    assert refused.message == 'Apply failed with 1 conflict: conflict with "writer" using v1: .data.key'


@covers("apply", "apply", "conflict")
async def test_a_conflict_over_status_names_the_endpoint(api: Api) -> None:
    things = await define_things(api)
    await api.apply(f"{things}/a", thing(api))
    status = {**thing(api), "status": {"phase": "On"}}
    await api.apply(f"{things}/a/status", status, fieldManager="one")
    status["status"] = {"phase": "Off"}
    refused = await api.apply(f"{things}/a/status", status, fieldManager="two")
    assert 'conflict with "one" with subresource "status": .status.phase' in refused.message


@covers("apply", "apply", "success")
async def test_force_takes_over(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.apply(path, config_map("a", key="1", other="1"), fieldManager="one")
    forced = await api.apply(path, config_map("a", key="2"), fieldManager="two", force="true")
    assert forced.body["data"] == {"key": "2", "other": "1"}
    assert owned(forced) == {"one": {"f:data": {"f:other": {}}}, "two": {"f:data": {"f:key": {}}}}


@covers("apply", "apply", "success")
async def test_what_is_applied_no_more_goes_unless_it_is_shared(api: Api) -> None:
    things = await define_things(api)
    await api.apply(f"{things}/a", thing(api, colour="red", config={"x": "1", "y": "1"}), fieldManager="one")
    await api.apply(f"{things}/a", thing(api, config={"y": "1"}), fieldManager="two")
    left = await api.apply(f"{things}/a", thing(api, tags=["t"]), fieldManager="one")
    assert left.body["spec"] == {"size": 3, "config": {"y": "1"}, "tags": ["t"]}


@covers("apply", "apply", "success")
async def test_who_applies_an_identity_alone_gives_everything_up(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    await api.apply(path, config_map("a", key="1", labels={"l": "1"}))
    bare = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    left = await api.apply(path, bare)
    assert "data" not in left.body
    assert "managedFields" not in left.body["metadata"]


@covers("apply", "apply", "conflict")
async def test_what_nobody_claims_was_there_before_the_first_apply(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a", key="1", other="1"))
    reset = await api.merge(f"{path}/a", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in reset.body["metadata"]
    refused = await api.apply(f"{path}/a", config_map("a", key="2"))
    assert 'conflict with "before-first-apply" using v1: .data.key' in refused.message
    applied = await api.apply(f"{path}/a", config_map("a", key="1"))
    assert owned(applied).keys() == {"tester", "before-first-apply"}


@covers("apply", "apply", "success")
async def test_kubectl_goes_from_client_side_to_server_side_apply(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    before = config_map("a", key="1", other="1")
    text = orjson.dumps(before).decode() + "\n"
    annotated = before | {"metadata": {"name": "a", "annotations": {LAST_APPLIED: text}}}
    await api.post(api.path("configmaps"), annotated, fieldManager="kubectl-client-side-apply")
    refused = await api.apply(path, config_map("a", key="2"), fieldManager="somebody")
    assert refused.status == 409
    applied = await api.apply(path, config_map("a", key="2", other="1"), fieldManager="kubectl")
    assert applied.body["data"] == {"key": "2", "other": "1"}
    kept = orjson.loads(applied.body["metadata"]["annotations"][LAST_APPLIED])
    assert kept["data"] == {"key": "2", "other": "1"}


@covers("apply", "apply", "success")
async def test_kubectl_hands_over_what_it_applied_on_the_client(api: Api) -> None:
    """What `kubectl apply --server-side` sends for an object that `kubectl apply` made."""
    path = f"{api.path('configmaps')}/a"
    before = config_map("a", key="1", other="1")
    annotated = before | {"metadata": {"name": "a", "annotations": {LAST_APPLIED: orjson.dumps(before).decode()}}}
    await api.post(api.path("configmaps"), annotated, fieldManager="kubectl-client-side-apply")
    applied = await api.apply(path, config_map("a", key="1", other="1"), fieldManager="kubectl")
    kept = annotated["metadata"]["annotations"]
    marker = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": kept}}
    await api.apply(path, marker, fieldManager="kubectl-last-applied")
    live = await api.get(path)
    entries = live.body["metadata"]["managedFields"]
    mine = next(entry for entry in entries if entry["manager"] == "kubectl")
    migrated = [
        {"op": "replace", "path": "/metadata/managedFields", "value": [mine]},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.revision},
    ]
    answer = await api.json(path, migrated, fieldManager="kubectl-client-side-apply")
    assert owned(answer).keys() == {"kubectl"}
    assert applied.status == 200
    left = await api.apply(path, config_map("a", key="1"), fieldManager="kubectl")
    assert left.body["data"] == {"key": "1"}


@covers("apply", "apply", "success")
async def test_a_dry_run_shows_what_an_apply_would_do(api: Api) -> None:
    path = f"{api.path('configmaps')}/a"
    imagined = await api.apply(path, config_map("a", key="1"), dryRun="All")
    assert (imagined.status, imagined.body["data"]) == (201, {"key": "1"})
    assert (await api.get(path)).status == 404
    await api.apply(path, config_map("a", key="1"))
    changed = await api.apply(path, config_map("a", key="2"), dryRun="All")
    assert changed.body["data"] == {"key": "2"}
    assert (await api.get(path)).body["data"] == {"key": "1"}


@covers("apply", "apply", "success")
@pytest.mark.parametrize("manager", ["tester", "kubectl"])
async def test_no_annotations_may_be_said_with_a_null(api: Api, manager: str) -> None:
    things = await define_things(api)
    for colour in ("red", "blue"):
        configuration = thing(api, colour=colour)
        configuration["metadata"]["annotations"] = None
        await api.apply(f"{things}/a", configuration, fieldManager=manager)
    await api.get(f"{things}/a")
