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


async def test_true_and_one_are_not_the_same(http: Http) -> None:
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    await http.define(widget_definition(schema=anything))
    await http.post(WIDGETS, widget("a", odd=1))
    assert (await http.merge(f"{WIDGETS}/a", {"spec": {"odd": True}})).body["spec"]["odd"] is True


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
