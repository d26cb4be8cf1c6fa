"""The four patch types, as requests."""

from __future__ import annotations

import pytest

from tests.localplane.wire import CONFIG_MAPS, Http, config_map, widget

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def test_a_json_patch_applies_as_a_whole_or_not_at_all(http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a", size=3))
    operations = [{"op": "test", "path": "/spec/size", "value": 3}, {"op": "replace", "path": "/spec/size", "value": 4}]
    patched = await http("PATCH", f"{widgets}/a", operations, content_type=JSON_PATCH)
    assert patched.body["spec"] == {"size": 4}
    failed = await http("PATCH", f"{widgets}/a", operations, content_type=JSON_PATCH)
    assert (failed.status, failed.body["reason"]) == (422, "Invalid")
    stale = [{"op": "test", "path": "/metadata/resourceVersion", "value": created.revision}]
    assert (await http("PATCH", f"{widgets}/a", stale, content_type=JSON_PATCH)).status == 422
    unreadable = await http("PATCH", f"{widgets}/a", [{"op": "dance", "path": "/"}], content_type=JSON_PATCH)
    assert unreadable.status == 400


async def test_a_strategic_merge_keeps_what_has_another_name(http: Http) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "one", "image": "one:1"}]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    created = await http.post(DEPLOYMENTS, {"metadata": {"name": "a"}, "spec": spec})
    assert created.status == 201, created.body
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "two:1"}]}}}}
    patched = await http("PATCH", f"{DEPLOYMENTS}/a", patch, content_type=STRATEGIC)
    names = [container["name"] for container in patched.body["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["one", "two"]


async def test_custom_kinds_know_no_strategic_merge(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    refused = await http("PATCH", f"{widgets}/a", {"spec": {"size": 4}}, content_type=STRATEGIC)
    assert (refused.status, refused.body["reason"]) == (415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    ("content_type", "body"), [(JSON_PATCH, {"a": 1}), ("application/merge-patch+json", [1]), ("text/plain", {})]
)
async def test_a_patch_of_the_wrong_shape_is_refused(http: Http, content_type: str, body: object) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    assert (await http("PATCH", f"{CONFIG_MAPS}/a", body, content_type=content_type)).status in {400, 415}


async def test_a_patch_of_nothing_is_not_found(http: Http) -> None:
    assert (await http.merge(f"{CONFIG_MAPS}/a", {"data": {}})).status == 404


async def test_an_apply_creates_and_then_changes_nothing_twice(http: Http, widgets: str) -> None:
    created = await http.apply(f"{widgets}/a", widget("a", size=4))
    assert created.status == 201
    assert created.body["metadata"]["generation"] == 1
    (entry,) = created.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("tester", "Apply")
    assert entry["fieldsV1"] == {"f:spec": {"f:size": {}}}
    again = await http.apply(f"{widgets}/a", widget("a", size=4))
    assert (again.status, again.body) == (200, created.body)


async def test_a_default_belongs_to_nobody_who_did_not_apply_it(http: Http, widgets: str) -> None:
    created = await http.apply(f"{widgets}/a", widget("a", colour="red"))
    assert created.body["spec"] == {"colour": "red", "size": 3}
    (entry,) = created.body["metadata"]["managedFields"]
    assert entry["fieldsV1"] == {"f:spec": {"f:colour": {}}}
    assert (await http.apply(f"{widgets}/a", widget("a", colour="red"))).body == created.body


async def test_an_apply_over_someone_else_conflicts_naming_field_and_manager(http: Http, widgets: str) -> None:
    await http.apply(f"{widgets}/a", widget("a", size=4))
    await http.merge(f"{widgets}/a", {"spec": {"size": 5}}, fieldManager="editor")
    conflict = await http.apply(f"{widgets}/a", widget("a", size=6))
    assert (conflict.status, conflict.body["reason"]) == (409, "Conflict")
    assert conflict.causes == [("FieldManagerConflict", ".spec.size")]
    assert 'conflict with "editor"' in conflict.body["message"]
    forced = await http.apply(f"{widgets}/a", widget("a", size=6), force="True")
    assert forced.body["spec"]["size"] == 6


async def test_several_conflicts_are_told_by_manager(http: Http) -> None:
    path, kind = f"{CONFIG_MAPS}/a", {"apiVersion": "v1", "kind": "ConfigMap"}
    await http.apply(path, kind | {"data": {"a": "1", "b": "1"}}, fieldManager="zed")
    await http.apply(path, kind | {"data": {"a": "1"}}, fieldManager="one")
    await http.merge(path, {"data": {"c": "1"}}, fieldManager="editor")
    conflict = await http.apply(path, kind | {"data": {"a": "2", "b": "2", "c": "2"}})
    assert conflict.body["message"] == (
        "Apply failed with 4 conflicts: "
        'conflicts with "editor" using v1:\n- .data.c\n'
        'conflicts with "one":\n- .data.a\n'
        'conflicts with "zed":\n- .data.a\n- .data.b'
    )
    single = await http.apply(path, kind | {"data": {"b": "2"}})
    assert single.body["message"] == 'Apply failed with 1 conflict: conflict with "zed": .data.b'


async def test_a_list_keyed_by_name_is_shared_between_managers(http: Http, widgets: str) -> None:
    await http.apply(f"{widgets}/a", widget("a", parts=[{"name": "one"}, {"name": "two"}]), fieldManager="first")
    await http.apply(f"{widgets}/a", widget("a", parts=[{"name": "three"}]), fieldManager="second")
    shrunk = await http.apply(f"{widgets}/a", widget("a", parts=[{"name": "two"}]), fieldManager="first")
    assert sorted(part["name"] for part in shrunk.body["spec"]["parts"]) == ["three", "two"]


async def test_status_is_applied_through_its_own_endpoint(http: Http, widgets: str) -> None:
    await http.apply(f"{widgets}/a", widget("a", size=4))
    status = widget("a", size=9) | {"status": {"phase": "Up"}}
    applied = await http.apply(f"{widgets}/a/status", status, fieldManager="reporter")
    assert applied.body["status"] == {"phase": "Up"}
    assert applied.body["spec"]["size"] == 4
    entry = next(one for one in applied.body["metadata"]["managedFields"] if one["manager"] == "reporter")
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {"f:phase": {}}})
    again = await http.apply(f"{widgets}/a/status", status, fieldManager="reporter")
    assert again.revision == applied.revision
    ignored = await http.apply(f"{widgets}/a", widget("a", size=4) | {"status": {"phase": "Down"}})
    assert ignored.body["status"] == {"phase": "Up"}
    assert (await http.apply(f"{widgets}/none/status", widget("none"))).status == 404


async def test_an_apply_needs_a_manager(http: Http, widgets: str) -> None:
    refused = await http.apply(f"{widgets}/a", widget("a"), fieldManager="")
    assert refused.status == 422
    assert "fieldManager" in refused.body["message"]


async def test_an_apply_may_say_which_state_it_has_seen(http: Http, widgets: str) -> None:
    created = await http.apply(f"{widgets}/a", widget("a", size=4))
    await http.merge(f"{widgets}/a", {"metadata": {"labels": {"x": "y"}}})
    stale = widget("a", size=5)
    stale["metadata"]["resourceVersion"] = created.revision
    assert (await http.apply(f"{widgets}/a", stale)).status == 409


async def test_writes_are_attributed_to_who_made_them(http: Http, widgets: str) -> None:
    created = await http("POST", widgets, widget("a", size=4), headers={"User-Agent": "robot/1.0 (linux)"})
    (entry,) = created.body["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("robot", "Update")
    changed = await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}}, fieldManager="reporter")
    entry = next(one for one in changed.body["metadata"]["managedFields"] if one["manager"] == "reporter")
    assert (entry["operation"], entry["subresource"]) == ("Update", "status")


async def test_an_apply_of_nothing_but_an_identity_lets_go_of_everything(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a", colour="red"), fieldManager="creator")
    applied = await http.apply(f"{widgets}/a", widget("a", parts=[{"name": "one"}]))
    identity = {"name": "a", "namespace": "default", "uid": applied.body["metadata"]["uid"]}
    released = await http.apply(
        f"{widgets}/a", {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": identity}, force="true"
    )
    assert released.status == 200, released.body
    assert released.body["spec"] == {"colour": "red", "size": 3}
    assert [entry["manager"] for entry in released.body["metadata"]["managedFields"]] == ["creator"]
