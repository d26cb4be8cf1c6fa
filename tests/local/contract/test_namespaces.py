"""Namespaces: made, emptied, ended."""

from __future__ import annotations

from typing import Any

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers

NAMESPACES = "/api/v1/namespaces"


async def _made(api: Api, **metadata: Any) -> str:
    """The path of a namespace of this case's own."""
    name = api.another_namespace("team")
    created = await api.post(NAMESPACES, {"metadata": {"name": name, **metadata}})
    assert created.status == 201
    return f"{NAMESPACES}/{name}"


async def _phase(api: Api, path: str) -> str:
    return str((await api.silent.get(path)).body.get("status", {}).get("phase", ""))


@covers("namespaces", "create", "success")
async def test_a_namespace_is_active_and_labelled_with_its_name(api: Api) -> None:
    path = await _made(api, labels={"team": "blue"})
    found = await api.get(path)
    assert found.body["status"] == {"phase": "Active"}
    assert found.body["spec"] == {"finalizers": ["kubernetes"]}


@covers("namespaces", "update", "success")
async def test_the_label_with_the_name_stays(api: Api) -> None:
    path = await _made(api)
    for labels in ({"kubernetes.io/metadata.name": "other"}, {"kubernetes.io/metadata.name": None}, None):
        await api.merge(path, {"metadata": {"labels": labels}})
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": path.rpartition("/")[2]}}
    assert (await api.put(path, bare)).status == 200


@covers("namespaces", "update", "success")
async def test_the_end_of_a_namespace_is_not_its_owners_to_change(api: Api) -> None:
    path = await _made(api)
    await api.merge(path, {"spec": {"finalizers": []}, "status": {"phase": "Terminating"}})
    await api.merge(f"{path}/status", {"spec": {"finalizers": []}, "status": {"phase": "Terminating"}})
    found = await api.silent.get(path)
    await api.put(f"{path}/status", found.body | {"status": {"phase": "Other"}})


@covers("namespaces", "create", "success")
async def test_a_new_namespace_takes_finalizers_of_its_specification(api: Api) -> None:
    name = api.another_namespace("team")
    spec = {"finalizers": ["example.com/mine"]}
    assert (await api.post(NAMESPACES, {"metadata": {"name": name}, "spec": spec})).status == 201
    path = f"{NAMESPACES}/{name}"
    found = await api.get(path)
    assert (await api.put(f"{path}/finalize", found.body | {"spec": {"finalizers": ["kubernetes"]}})).status == 200


@covers("namespaces", "delete", "success")
async def test_an_empty_namespace_goes(api: Api) -> None:
    path = await _made(api)
    marked = await api.delete(path)
    assert marked.body["status"]["phase"] == "Terminating"
    await api.gone(path)


@covers("namespaces", "delete", "success")
async def test_a_namespace_goes_when_its_content_has_gone(api: Api) -> None:
    path = await _made(api)
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(f"{path}/configmaps", held)
    await api.post(f"{path}/configmaps", config_map("b"))
    assert (await api.delete(path)).status == 200
    await api.gone(f"{path}/configmaps/b")
    late = await api.post(f"{path}/configmaps", config_map("late"))
    assert late.causes == [("NamespaceTerminating", "metadata.namespace")]
    assert (await api.merge(f"{path}/configmaps/a", {"data": {"still": "there"}})).status == 200

    async def told() -> bool:
        found = await api.silent.get(path)
        return "NamespaceFinalizersRemaining" in str(found.body["status"])

    await api.until(told)
    found = await api.silent.get(path)
    conditions = [one | {"lastTransitionTime": ""} for one in found.body["status"]["conditions"]]
    api.note("conditions", sorted(conditions, key=lambda one: str(one["type"])))
    await api.silent.merge(f"{path}/configmaps/a", {"metadata": {"finalizers": None}})
    await api.gone(path)


@covers("namespaces", "delete", "conflict")
async def test_a_namespace_is_not_deleted_twice(api: Api) -> None:
    path = await _made(api, finalizers=["example.com/hold"])
    assert (await api.delete(path)).status == 200

    async def empty() -> bool:
        found = await api.silent.get(path)
        return not found.body.get("spec", {}).get("finalizers")

    await api.until(empty)
    again = await api.silent.delete(path)
    api.note("deleted again", [again.status, again.body.get("message")])
    await api.silent.merge(path, {"metadata": {"finalizers": None}})
    await api.gone(path)


@covers("namespaces", "update", "success")
async def test_a_finalizer_of_somebody_else_holds_a_namespace(api: Api) -> None:
    path = await _made(api)
    found = await api.get(path)
    both = {"spec": {"finalizers": ["example.com/mine", "kubernetes"]}}
    assert (await api.put(f"{path}/finalize", found.body | both)).status == 200
    await api.delete(path)

    async def emptied() -> bool:
        found = await api.silent.get(path)
        return bool(found.body["spec"]["finalizers"] == ["example.com/mine"])

    await api.until(emptied)
    left = await api.silent.get(path)
    assert (await api.silent.put(f"{path}/finalize", left.body | {"spec": {}})).status == 200
    await api.gone(path)


@covers("namespaces", "update", "refusal")
async def test_finalizers_of_a_namespace_are_qualified(api: Api) -> None:
    path = await _made(api)
    found = await api.get(path)
    refused = await api.put(f"{path}/finalize", found.body | {"spec": {"finalizers": ["mine"]}})
    assert refused.status == 422
    assert (await api.get(f"{path}/finalize")).status == 405
    assert (await api.merge(f"{path}/finalize", {"spec": {}})).status == 405


@covers("namespaces", "delete", "refusal")
@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_are_for_ever(api: Api, name: str) -> None:
    assert (await api.delete(f"{NAMESPACES}/{name}")).status == 403


@covers("namespaces", "delete", "refusal")
@pytest.mark.parametrize("policy", ["Foreground", "Background", "Orphan"])
async def test_a_policy_does_not_keep_the_content_of_a_namespace(api: Api, policy: str) -> None:
    path = await _made(api)
    await api.silent.post(f"{path}/configmaps", config_map("a"))
    marked = await api.delete(path, {"propagationPolicy": policy})
    assert marked.status == 200
    await api.gone(path)


@covers("namespaces", "get", "refusal")
async def test_a_namespace_that_is_not_there_has_no_content(api: Api) -> None:
    assert (await api.get("/api/v1/namespaces/nowhere/configmaps")).body["items"] == []
    assert (await api.get("/api/v1/namespaces/nowhere/configmaps/a")).status == 404
    assert (await api.get("/api/v1/namespaces/nowhere")).status == 404
    assert (await api.merge("/api/v1/namespaces/nowhere/configmaps/a", {"data": {}})).status == 404
