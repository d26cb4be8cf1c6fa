"""Creating, reading, replacing and patching one object at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map, deployment
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("crud", "create", "success")
async def test_what_was_created_is_read_back(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", key="value"))
    assert created.status == 201
    assert (await api.get(f"{path}/a")).body == created.body


@covers("crud", "create", "conflict")
async def test_a_name_is_taken_once(api: Api) -> None:
    await api.define(api.widgets())
    for path, obj in (
        (api.path("configmaps"), config_map("a")),
        (api.path("widgets", group=api.group), api.widget("a")),
    ):
        await api.post(path, obj)
        refused = await api.post(path, obj)
        assert (refused.status, refused.body["reason"]) == (409, "AlreadyExists")


@covers("crud", "create", "success")
async def test_what_a_client_may_not_set_is_replaced(api: Api) -> None:
    await api.define(api.widgets())
    forged = api.widget("a", colour="red")
    forged["metadata"] |= {
        "uid": "mine",
        "generation": 9,
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "deletionTimestamp": "2000-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 4,
        "selfLink": "/here",
    }
    created = await api.post(api.path("widgets", group=api.group), forged | {"status": {"phase": "Done"}})
    assert created.body["metadata"]["generation"] == 1
    assert created.body["metadata"]["uid"] != "mine"
    assert "status" not in created.body


@covers("crud", "create", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Secret"},
        {"apiVersion": "v2"},
        {"metadata": {"name": "a", "namespace": "kube-system"}},
        {"metadata": {"name": "a", "resourceVersion": "7"}},
        {"metadata": "a"},
        {"metadata": None},
    ],
    ids=["kind", "version", "namespace", "revision", "metadata-text", "metadata-null"],
)
async def test_a_new_object_must_be_what_the_url_says(api: Api, change: dict[str, Any]) -> None:
    refused = await api.post(api.path("configmaps"), config_map("a") | change)
    assert refused.status >= 400


@covers("crud", "create", "refusal")
@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Other"},
        {"apiVersion": "other.example.com/v1"},
        {"kind": "", "apiVersion": ""},
        {"metadata": {"name": "a", "namespace": "kube-system"}},
        {"metadata": {"name": "a", "resourceVersion": "7"}},
    ],
    ids=["kind", "version", "untyped", "namespace", "revision"],
)
async def test_a_new_custom_object_must_be_what_the_url_says(api: Api, change: dict[str, Any]) -> None:
    await api.define(api.widgets())
    refused = await api.post(api.path("widgets", group=api.group), api.widget("a") | change)
    assert refused.status >= 400


@covers("crud", "create", "refusal")
async def test_an_object_needs_a_namespace_that_exists(api: Api) -> None:
    refused = await api.post(api.path("configmaps", namespace="nowhere"), config_map("a"))
    assert (refused.status, refused.message) == (404, 'namespaces "nowhere" not found')


@covers("crud", "create", "refusal")
async def test_a_namespaced_object_is_not_created_outside_of_a_namespace(api: Api) -> None:
    everywhere = api.path("configmaps", namespace=None)
    assert (await api.post(everywhere, config_map("a"))).status == 405
    inside = config_map("a") | {"metadata": {"name": "a", "namespace": api.namespace}}
    assert (await api.post(everywhere, inside)).status == 405


@covers("crud", "get", "refusal")
async def test_what_is_not_there_is_not_found(api: Api) -> None:
    await api.define(api.widgets())
    widgets, config_maps = api.path("widgets", group=api.group), api.path("configmaps")
    for path in (f"{widgets}/a", f"{widgets}/a/status", f"{config_maps}/a"):
        assert (await api.get(path)).status == 404
        assert (await api.merge(path, {"metadata": {"labels": {"a": "b"}}})).status == 404
    assert (await api.delete(f"{widgets}/a")).status == 404
    assert (await api.delete(f"{config_maps}/a")).status == 404


@covers("crud", "get", "refusal")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/no.where/v1/namespaces/default/things"),
        ("GET", "/nothing"),
        ("GET", "/api/v2/configmaps"),
        ("GET", "/api/v1/namespaces/default/configmaps/a/status"),
        ("GET", "/api/v1/namespaces/default/configmaps/a/b/c"),
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("DELETE", "/api/v1/namespaces"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/version"),
    ],
)
async def test_unknown_paths_and_methods_are_told_apart(api: Api, method: str, path: str) -> None:
    answer = await api(method, path, None if method in {"GET", "DELETE"} else config_map("a"))
    assert answer.status in {404, 405}


@covers("crud", "update", "success")
async def test_a_put_replaces_everything(api: Api) -> None:
    path = api.path("configmaps")
    created = await api.post(path, config_map("a", labels={"x": "y"}, one="1"))
    replaced = await api.put(f"{path}/a", created.body | {"data": {"two": "2"}})
    assert replaced.body["data"] == {"two": "2"}
    bare = await api.put(f"{path}/a", config_map("a", three="3"))
    assert "labels" not in bare.body["metadata"]


@covers("crud", "update", "conflict")
async def test_a_put_of_something_stale_conflicts(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    created = (await api.post(path, api.widget("a"))).body
    assert (await api.put(f"{path}/a", created | {"spec": {"size": 4}})).status == 200
    stale = await api.put(f"{path}/a", created | {"spec": {"size": 5}})
    assert (stale.status, stale.body["reason"]) == (409, "Conflict")
    other = created | {"metadata": created["metadata"] | {"uid": "11111111-2222-3333-4444-555555555555"}}
    assert (await api.put(f"{path}/a", other)).status == 409
    patched = await api.merge(f"{path}/a", {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}})
    assert patched.status == 409


@covers("crud", "update", "refusal")
async def test_a_put_of_a_custom_object_must_say_what_it_has_seen(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group, name="a")
    await api.post(api.path("widgets", group=api.group), api.widget("a"))
    unseen = await api.put(path, api.widget("a", size=4))
    assert unseen.causes == [("FieldValueInvalid", "metadata.resourceVersion")]
    zero = api.widget("a", size=4)
    zero["metadata"]["resourceVersion"] = "0"
    assert (await api.put(path, zero)).status == 422


@covers("crud", "update", "refusal")
@pytest.mark.parametrize("revision", ["abc", "-1", "18446744073709551616", "1.0"])
async def test_a_revision_that_is_no_number_is_refused(api: Api, revision: str) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    body = config_map("a") | {"metadata": {"name": "a", "resourceVersion": revision}}
    assert (await api.put(f"{path}/a", body)).status == 500
    assert (await api.get(f"{path}/a", resourceVersion=revision)).status == 500


@covers("crud", "update", "refusal")
@pytest.mark.parametrize(
    "change", [{"name": "b"}, {"name": ""}, {"namespace": "kube-system"}], ids=["other-name", "no-name", "namespace"]
)
async def test_a_put_must_be_of_what_the_url_says(api: Api, change: dict[str, str]) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    refused = await api.put(f"{path}/a", config_map("a") | {"metadata": {"name": "a"} | change})
    assert refused.status in {400, 422}


@covers("crud", "update", "refusal")
async def test_a_put_creates_only_what_may_be_created_so(api: Api) -> None:
    assert (await api.put(api.path("configmaps", "a"), config_map("a"))).status == 404
    lease = {"metadata": {"name": "a"}, "spec": {"holderIdentity": "me"}}
    path = api.path("leases", "a", group="coordination.k8s.io")
    assert (await api.put(path, lease)).status == 201
    assert (await api.put(path, lease)).status == 422
    await api.define(api.widgets())
    assert (await api.put(api.path("widgets", "a", group=api.group), api.widget("a"))).status == 404


@covers("crud", "update", "success")
async def test_a_write_that_changes_nothing_moves_no_revision(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", "a", group=api.group)
    created = await api.post(api.path("widgets", group=api.group), api.widget("a", size=4))
    assert (await api.merge(path, {"spec": {"size": 4}})).body == created.body
    assert (await api.put(path, created.body)).body == created.body
    status = await api.merge(f"{path}/status", {"status": {"phase": "Up"}})
    assert status.revision != created.revision
    assert (await api.merge(f"{path}/status", {"status": {"phase": "Up"}})).revision == status.revision


@covers("crud", "patch", "success")
async def test_generation_counts_changes_of_the_specification_only(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", "a", group=api.group)
    await api.post(api.path("widgets", group=api.group), api.widget("a"))
    labelled = await api.merge(path, {"metadata": {"labels": {"x": "y"}}})
    status = await api.merge(f"{path}/status", {"status": {"phase": "Up"}})
    changed = await api.merge(path, {"spec": {"size": 4}})
    assert [one.body["metadata"]["generation"] for one in (labelled, status, changed)] == [1, 1, 2]


@covers("crud", "update", "success")
async def test_each_endpoint_changes_its_own_half(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", "a", group=api.group)
    created = await api.post(api.path("widgets", group=api.group), api.widget("a"))
    both = {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 4}, "status": {"phase": "Up"}}
    status = await api.merge(f"{path}/status", both)
    assert status.body["spec"] == {"size": 3}
    assert "labels" not in status.body["metadata"]
    main = await api.merge(path, both | {"status": {"phase": "Down"}})
    assert (main.body["spec"], main.body["status"]) == ({"size": 4}, {"phase": "Up"})
    put = await api.put(f"{path}/status", main.body | {"spec": {"size": 5}, "status": {"phase": "Put"}})
    assert (put.body["spec"], put.body["status"]) == ({"size": 4}, {"phase": "Put"})
    assert (await api.put(f"{path}/status", created.body)).status == 409
    assert (await api.get(f"{path}/status")).body == put.body


@covers("crud", "create", "success")
async def test_a_secret_takes_plain_strings_and_keeps_them_encoded(api: Api) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"word": "x"}, "data": {"other": "eQ=="}}
    created = await api.post(api.path("secrets"), secret)
    assert created.body["data"] == {"other": "eQ==", "word": "eA=="}
    merged = await api.merge(api.path("secrets", "s"), {"stringData": {"other": "z"}})
    assert merged.body["data"]["other"] == "eg=="


@covers("crud", "update", "refusal")
async def test_what_is_immutable_stays(api: Api) -> None:
    frozen = await api.post(api.path("configmaps"), config_map("a", key="value") | {"immutable": True})
    assert frozen.body["immutable"] is True
    changed = await api.merge(api.path("configmaps", "a"), {"data": {"key": "other"}})
    assert changed.status == 422
    assert (await api.merge(api.path("configmaps", "a"), {"immutable": None})).status == 422
    await api.post(api.path("secrets"), {"metadata": {"name": "s"}, "immutable": True, "data": {"a": "eA=="}})
    assert (await api.merge(api.path("secrets", "s"), {"data": {"a": "eQ=="}})).status == 422
    assert (await api.merge(api.path("secrets", "s"), {"type": "other"})).status == 422


@covers("crud", "update", "success")
async def test_a_deployment_is_scaled(api: Api) -> None:
    path = api.path("deployments", "a", group="apps")
    # Without pods to make, no controller writes while the case is looking.
    await api.silent.post(api.path("deployments", group="apps"), deployment("a", replicas=0, paused=True))
    scale = await api.silent.get(f"{path}/scale")
    assert scale.body["kind"] == "Scale"
    assert scale.body["spec"] == {}
    assert scale.body["status"] == {"replicas": 0, "selector": "app=a"}


@covers("crud", "update", "refusal")
@pytest.mark.parametrize("validation", ["Ignore", "Warn", "Strict"])
async def test_a_scale_is_held_to_its_type(api: Api, validation: str) -> None:
    # Of a kind that no controller of these tests looks after.
    path = api.path("statefulsets", group="apps")
    stateful = deployment("a", replicas=0) | {"kind": "StatefulSet"}
    assert (await api.silent.post(path, stateful)).status == 201
    scale = f"{path}/a/scale"
    asked = {"fieldValidation": validation, "dryRun": "All"}
    specs: list[Any] = [{"replicas": "x"}, {"replicas": 0, "size": 1}, []]
    named = {"metadata": {"name": "a"}}
    repeated = b'{"metadata":{"name":"a"},"spec":{"replicas":0,"replicas":0}}'
    for at in (scale, f"{path}/none/scale"):
        for spec in specs:
            assert (await api.put(at, named | {"spec": spec}, **asked)).status in {200, 400, 404}
        await api.put(at, repeated, **asked)
        assert (await api.put(at, {"spec": {"replicas": 0}}, **asked)).status == 400
    for patch in ({"spec": {"replicas": "x"}}, {"spec": {"replicas": 0, "size": 1}}):
        patched = await api.silent.merge(scale, patch, **asked)
        # What was patched is repeated in the refusal, with its revision and its moments.
        api.note("patched", [patched.status, patched.headers.get("Warning"), str(patched.body.get("message"))[-80:]])


@covers("crud", "patch", "success")
async def test_a_custom_object_is_scaled(api: Api) -> None:
    subresources = {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await api.define(api.widgets(subresources=subresources, schema={"openAPIV3Schema": schema}))
    path = api.path("widgets", "a", group=api.group)
    await api.post(api.path("widgets", group=api.group), api.widget("a", size=2))
    scale = await api.get(f"{path}/scale")
    assert scale.body["spec"] == {"replicas": 2}
    scaled = await api.put(f"{path}/scale", scale.body | {"spec": {"replicas": 5}})
    assert scaled.body["spec"] == {"replicas": 5}
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": 6}})).status == 200
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": -1}})).status == 422
    assert (await api.put(f"{path}/scale", scale.body)).status == 409
    assert (await api.silent.get(path)).body["spec"] == {"size": 6}
