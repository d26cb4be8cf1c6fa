"""What the server adds to objects, and when it counts a change; the contract suite holds the rest."""

from __future__ import annotations

from tests.local.plane.wire import CONFIG_MAPS, WIDGETS, Http, widget, widget_definition
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


async def test_yaml_is_read_as_kubernetes_reads_it(http: Http) -> None:
    body = b"metadata:\n  name: a\ndata:\n  day: 2026-01-02\n  text: hello\n"
    created = await http("POST", CONFIG_MAPS, body, content_type="application/yaml")
    assert created.body["data"] == {"day": "2026-01-02", "text": "hello"}
