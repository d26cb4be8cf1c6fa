"""Creating, reading and changing objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.localplane.wire import CONFIG_MAPS, WIDGETS, Http, config_map, widget, widget_definition
from tests.support.clock import VirtualClock


async def test_a_created_object_carries_what_the_server_gave_it(http: Http, widgets: str, clock: VirtualClock) -> None:
    created = await http.post(widgets, widget("a"))
    assert created.status == 201
    metadata = created.body["metadata"]
    assert metadata["namespace"] == "default"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    assert metadata["uid"]
    assert created.body["spec"] == {"size": 3}
    assert (await http.get(f"{widgets}/a")).body == created.body


async def test_what_a_client_may_not_set_is_replaced(http: Http, widgets: str) -> None:
    forged = widget("a")
    forged["metadata"] |= {"uid": "mine", "generation": 9, "creationTimestamp": "2000-01-01T00:00:00Z"}
    forged["status"] = {"phase": "Done"}
    created = await http.post(widgets, forged)
    assert created.body["metadata"]["uid"] != "mine"
    assert created.body["metadata"]["generation"] == 1
    assert "status" not in created.body


async def test_a_name_is_taken_only_once(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    again = await http.post(widgets, widget("a"))
    assert (again.status, again.body["reason"]) == (409, "AlreadyExists")
    assert again.body["message"] == 'widgets.example.com "a" already exists'
    assert again.body["details"] == {"name": "a", "group": "example.com", "kind": "widgets"}


async def test_names_are_generated_from_a_prefix(http: Http, widgets: str) -> None:
    unnamed = widget("a")
    unnamed["metadata"] = {"generateName": "run-"}
    names = {(await http.post(widgets, unnamed)).body["metadata"]["name"] for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("run-") and len(name) == 9 for name in names)


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "a" * 254, ""])
async def test_names_follow_the_rules_of_dns(http: Http, widgets: str, name: str) -> None:
    refused = await http.post(widgets, widget(name))
    assert (refused.status, refused.body["reason"]) == (422, "Invalid")
    assert refused.causes[0][1] == "metadata.name"


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"a": "b c"}}, "metadata.labels"),
        ({"annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
        ({"ownerReferences": [{"kind": "X"}]}, "metadata.ownerReferences[0].apiVersion"),
        ({"finalizers": ["not qualified"]}, "metadata.finalizers[0]"),
    ],
)
async def test_metadata_is_as_strict_as_on_a_cluster(
    http: Http, widgets: str, metadata: dict[str, object], field: str
) -> None:
    wrong = widget("a")
    wrong["metadata"] |= metadata
    refused = await http.post(widgets, wrong)
    assert refused.status == 422
    assert field in [path for _, path in refused.causes]


async def test_an_object_needs_a_namespace_that_exists(http: Http) -> None:
    refused = await http.post("/api/v1/namespaces/nowhere/configmaps", config_map("a"))
    assert (refused.status, refused.body["message"]) == (404, 'namespaces "nowhere" not found')


async def test_the_body_must_be_what_the_url_says(http: Http) -> None:
    elsewhere = config_map("a")
    elsewhere["metadata"]["namespace"] = "kube-system"
    assert (await http.post(CONFIG_MAPS, elsewhere)).status == 400
    assert (await http.post(CONFIG_MAPS, config_map("a") | {"kind": "Secret"})).status == 400
    await http.post(CONFIG_MAPS, config_map("a"))
    assert (await http.put(f"{CONFIG_MAPS}/a", config_map("b"))).status == 400


async def test_a_put_of_something_stale_conflicts(http: Http, widgets: str) -> None:
    created = (await http.post(widgets, widget("a"))).body
    assert (await http.put(f"{widgets}/a", created | {"spec": {"size": 4}})).status == 200
    stale = await http.put(f"{widgets}/a", created | {"spec": {"size": 5}})
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")


async def test_a_put_of_a_custom_object_must_say_what_it_has_seen(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    refused = await http.put(f"{widgets}/a", widget("a", size=4))
    assert refused.causes == [("FieldValueInvalid", "metadata.resourceVersion")]


async def test_a_put_of_a_config_map_need_not(http: Http) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    assert (await http.put(f"{CONFIG_MAPS}/a", config_map("a", key="value"))).body["data"] == {"key": "value"}


async def test_a_patch_with_a_stale_resource_version_conflicts(http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a"))
    await http.merge(f"{widgets}/a", {"spec": {"size": 4}})
    stale = {"metadata": {"resourceVersion": created.revision}, "spec": {"size": 5}}
    assert (await http.merge(f"{widgets}/a", stale)).status == 409


async def test_a_write_that_changes_nothing_moves_no_revision(http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a", size=4))
    assert (await http.merge(f"{widgets}/a", {"spec": {"size": 4}})).body == created.body
    assert (await http.put(f"{widgets}/a", created.body)).body == created.body
    status = await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}})
    assert status.revision != created.revision
    assert (await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}})).revision == status.revision


async def test_true_and_one_are_not_the_same(http: Http) -> None:
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await http.define(widget_definition(schema=anything))
    await http.post(WIDGETS, widget("a", odd=1))
    assert (await http.merge(f"{WIDGETS}/a", {"spec": {"odd": True}})).body["spec"]["odd"] is True


async def test_generation_counts_changes_of_the_specification_only(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    labelled = await http.merge(f"{widgets}/a", {"metadata": {"labels": {"x": "y"}}})
    assert labelled.body["metadata"]["generation"] == 1
    status = await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}})
    assert status.body["metadata"]["generation"] == 1
    changed = await http.merge(f"{widgets}/a", {"spec": {"size": 4}})
    assert changed.body["metadata"]["generation"] == 2


async def test_the_generation_of_a_deployment_counts_its_annotations_too(http: Http) -> None:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "one", "image": "one:1"}]}}
    workload = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template}}
    for plural, expected in (("deployments", [1, 2, 2]), ("replicasets", [1, 1, 1])):
        path = f"/apis/apps/v1/namespaces/default/{plural}"
        assert (await http.post(path, workload)).status == 201
        writes = [
            await http.merge(f"{path}/a", {"metadata": {"labels": {"x": "y"}}}),
            await http.merge(f"{path}/a", {"metadata": {"annotations": {"x": "y"}}}),
            await http.merge(f"{path}/a/status", {"metadata": {"annotations": {"x": "z"}}, "status": {"replicas": 1}}),
        ]
        assert [answer.body["metadata"]["generation"] for answer in writes] == expected


@pytest.mark.parametrize("reset", [[], [{}]], ids=str)
async def test_empty_managed_fields_reset_them_once(http: Http, reset: list[Any]) -> None:
    path = f"{CONFIG_MAPS}/a"
    await http.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}})
    live = (await http.get(path)).body
    live["metadata"]["managedFields"] = reset
    cleared = await http.put(path, live | {"data": {"a": "1", "b": "2"}})
    assert "managedFields" not in cleared.body["metadata"]
    again = await http.merge(path, {"metadata": {"managedFields": reset}})
    assert again.body == cleared.body
    await http.apply(path, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"c": "3"}})
    entries = (await http.get(path)).body["metadata"]["managedFields"]
    assert [entry["manager"] for entry in entries] == ["tester", "before-first-apply"]


async def test_an_applied_configuration_carries_no_managed_fields(http: Http) -> None:
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}}
    refused = await http.apply(f"{CONFIG_MAPS}/a", config)
    assert (refused.status, refused.body["message"]) == (400, "metadata.managedFields must be nil")
    await http.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    status = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"managedFields": []}, "status": {"phase": "Active"}}
    assert (await http.apply("/api/v1/namespaces/n/status", status)).status == 400


@pytest.mark.parametrize(
    ("revision", "problem"),
    [
        ("abc", 'parsing "abc": invalid syntax'),
        ("-1", 'parsing "-1": invalid syntax'),
        ("18446744073709551616", 'parsing "18446744073709551616": value out of range'),
    ],
)
async def test_a_revision_that_is_no_number_is_answered_as_the_real_server_does(
    http: Http, revision: str, problem: str
) -> None:
    await http.post(CONFIG_MAPS, config_map("a"))
    words = f'resourceVersion: Invalid value: "{revision}": strconv.ParseUint: {problem}'
    for path, query in ((f"{CONFIG_MAPS}/a", {}), (CONFIG_MAPS, {"watch": "1"})):
        answer = await http.get(path, resourceVersion=revision, **query)
        assert (answer.status, answer.body["message"], answer.body.get("reason")) == (500, words, None)
    listed = await http.get(CONFIG_MAPS, resourceVersion=revision)
    assert (listed.status, listed.body["message"]) == (400, f"invalid resource version: {words}")
    put = await http.put(f"{CONFIG_MAPS}/a", config_map("a") | {"metadata": {"name": "a", "resourceVersion": revision}})
    assert (put.status, put.body["message"]) == (500, f"strconv.ParseUint: {problem}")


async def test_revision_zero_is_no_precondition(http: Http, widgets: str) -> None:
    zero = {"metadata": {"name": "a", "resourceVersion": "0"}}
    await http.post(CONFIG_MAPS, config_map("a"))
    assert (await http.put(f"{CONFIG_MAPS}/a", zero | {"data": {"x": "y"}})).body["data"] == {"x": "y"}
    created = await http.post(widgets, widget("a"))
    refused = await http.put(f"{widgets}/a", created.body | {"metadata": created.body["metadata"] | zero["metadata"]})
    assert refused.status == 422
    assert "must be specified for an update" in refused.body["message"]


async def test_each_endpoint_changes_its_own_half(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    both = {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 4}, "status": {"phase": "Up"}}
    status = await http.merge(f"{widgets}/a/status", both)
    assert status.body["status"] == {"phase": "Up"}
    assert status.body["spec"] == {"size": 3}
    assert "labels" not in status.body["metadata"]
    main = await http.merge(f"{widgets}/a", both | {"status": {"phase": "Down"}})
    assert main.body["spec"] == {"size": 4}
    assert main.body["status"] == {"phase": "Up"}


async def test_a_dry_run_answers_and_stores_nothing(http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a"), dryRun="All")
    assert created.status == 201
    assert created.body["spec"] == {"size": 3}
    assert (await http.get(f"{widgets}/a")).status == 404
    real = await http.post(widgets, widget("a"))
    changed = await http.merge(f"{widgets}/a", {"spec": {"size": 4}}, dryRun="All")
    assert changed.body["spec"] == {"size": 4}
    assert (await http.delete(f"{widgets}/a", dryRun="All")).status == 200
    assert (await http.get(f"{widgets}/a")).body == real.body


async def test_unknown_fields_are_refused_reported_or_dropped(http: Http, widgets: str) -> None:
    odd = widget("a", sizze=1)
    strict = await http.post(widgets, odd, fieldValidation="Strict")
    assert strict.status == 400
    assert 'strict decoding error: unknown field "spec.sizze"' in strict.body["message"]
    ignored = await http.post(widgets, odd, fieldValidation="Ignore", dryRun="All")
    assert "Warning" not in ignored.headers
    warned = await http.post(widgets, odd, fieldValidation="Warn")
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.sizze\\""'
    assert "sizze" not in warned.body["spec"]


async def test_what_the_schema_forbids_is_refused_naming_the_field(http: Http, widgets: str) -> None:
    refused = await http.post(widgets, widget("a", size=0, colour="blue"))
    assert refused.status == 422
    assert sorted(refused.causes) == [
        ("FieldValueInvalid", "spec.size"),
        ("FieldValueNotSupported", "spec.colour"),
    ]


async def test_a_transition_rule_sees_the_object_before(http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a", colour="red"))
    refused = await http.merge(f"{widgets}/a", {"spec": {"colour": "green"}})
    assert refused.status == 422
    assert "colour is immutable" in refused.body["message"]


async def test_a_secret_takes_plain_strings_and_keeps_them_encoded(http: Http) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"token": "x"}, "data": {"other": "eQ=="}}
    created = await http.post("/api/v1/namespaces/default/secrets", secret)
    assert created.body["data"] == {"other": "eQ==", "token": "eA=="}
    assert created.body["type"] == "Opaque"
    assert "stringData" not in created.body


async def test_both_groups_of_events_are_the_same_objects(http: Http) -> None:
    event = {
        "metadata": {"name": "e"},
        "regarding": {"kind": "Widget", "name": "a", "namespace": "default"},
        "reason": "Done",
        "note": "all is well",
        "type": "Normal",
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "action": "Do",
        "reportingController": "tester",
        "reportingInstance": "tester-0",
    }
    created = await http.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert created.status == 201, created.body
    assert created.body["note"] == "all is well"
    core = await http.get("/api/v1/namespaces/default/events", fieldSelector="involvedObject.name=a,type=Normal")
    (found,) = core.body["items"]
    assert found["message"] == "all is well"
    assert found["involvedObject"]["name"] == "a"
    assert found["reportingComponent"] == "tester"
    patched = await http.merge("/api/v1/namespaces/default/events/e", {"count": 2})
    assert patched.status == 200
    seen = await http.get("/apis/events.k8s.io/v1/namespaces/default/events", fieldSelector="regarding.name=a")
    assert seen.body["items"][0]["deprecatedCount"] == 2


async def test_a_lease_is_taken_by_whoever_saw_it_last(http: Http) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = (await http.post(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})).body
    taken = await http.put(f"{path}/l", lease | {"spec": {"holderIdentity": "b"}})
    assert taken.status == 200
    late = await http.put(f"{path}/l", lease | {"spec": {"holderIdentity": "c"}})
    assert late.status == 409


async def test_an_object_that_is_too_large_is_refused(http: Http) -> None:
    refused = await http.post(CONFIG_MAPS, config_map("a", key="x" * 1_600_000))
    assert (refused.status, refused.body["reason"]) == (413, "RequestEntityTooLarge")
    assert (await http.get(f"{CONFIG_MAPS}/a")).status == 404


async def test_a_body_that_is_too_large_is_refused(http: Http) -> None:
    refused = await http.post(CONFIG_MAPS, config_map("a", key="x" * 3_500_000))
    assert refused.status == 413


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"kind: [", b"\x00\x01", b'"text"', b'{"a":' * 5000, b"- " * 5000])
async def test_a_body_that_is_no_object_is_a_bad_request(http: Http, body: bytes) -> None:
    assert (await http.post(CONFIG_MAPS, body)).status == 400


async def test_yaml_is_read_as_kubernetes_reads_it(http: Http) -> None:
    body = b"metadata:\n  name: a\ndata:\n  day: 2026-01-02\n  text: hello\n"
    created = await http("POST", CONFIG_MAPS, body, content_type="application/yaml")
    assert created.body["data"] == {"day": "2026-01-02", "text": "hello"}


async def test_an_unknown_content_type_is_refused(http: Http) -> None:
    assert (await http("POST", CONFIG_MAPS, b"<a/>", content_type="text/xml")).status == 415


async def test_unknown_paths_and_methods_are_told_apart(http: Http) -> None:
    assert (await http.get("/apis/example.com/v1/namespaces/default/widgets")).status == 404
    assert (await http.get("/nothing")).status == 404
    assert (await http.put(CONFIG_MAPS, config_map("a"))).status == 405
    assert (await http.get(f"{CONFIG_MAPS}/a/status")).status == 404
