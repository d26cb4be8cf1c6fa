"""Asking what would happen."""

from __future__ import annotations

import pytest

from tests.local.contract.examples import config_map
from tests.local.contract.wire import Api

covers = pytest.mark.covers


@covers("dry-run", "create", "success")
async def test_a_rehearsed_creation_is_answered_and_not_stored(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", group=api.group)
    assert (await api.post(path, api.widget("a"), dryRun="All")).status == 201
    assert (await api.get(f"{path}/a")).status == 404


@covers("dry-run", "create", "conflict")
async def test_a_rehearsed_creation_finds_the_name_taken(api: Api) -> None:
    await api.post(api.path("configmaps"), config_map("a"))
    assert (await api.post(api.path("configmaps"), config_map("a"), dryRun="All")).status == 409


@covers("dry-run", "create", "success")
async def test_a_rehearsed_creation_generates_a_name(api: Api) -> None:
    rehearsed = await api.post(api.path("configmaps"), {"metadata": {"generateName": "a-"}}, dryRun="All")
    assert rehearsed.body["metadata"]["name"].startswith("a-")


@covers("dry-run", "update", "success")
async def test_a_rehearsed_change_leaves_what_is_there(api: Api) -> None:
    await api.define(api.widgets())
    path = api.path("widgets", "a", group=api.group)
    created = await api.post(api.path("widgets", group=api.group), api.widget("a"))
    patched = await api.merge(path, {"spec": {"size": 4}}, dryRun="All")
    assert patched.body["spec"] == {"size": 4}
    assert patched.body["metadata"]["generation"] == 2
    assert (await api.put(path, created.body | {"spec": {"size": 5}}, dryRun="All")).status == 200
    assert (await api.json(path, [{"op": "replace", "path": "/spec/size", "value": 6}], dryRun="All")).status == 200
    assert (await api.merge(f"{path}/status", {"status": {"phase": "Up"}}, dryRun="All")).status == 200
    assert (await api.merge(path, {"spec": {"size": 0}}, dryRun="All")).status == 422
    assert (await api.get(path)).body == created.body


@covers("dry-run", "apply", "success")
async def test_a_rehearsed_apply_creates_and_changes_nothing(api: Api) -> None:
    path = api.path("configmaps", "a")
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}}
    assert (await api.apply(path, config, dryRun="All")).status == 201
    assert (await api.get(path)).status == 404
    await api.apply(path, config)
    changed = config | {"data": {"a": "2"}}
    assert (await api.apply(path, changed, dryRun="All")).body["data"] == {"a": "2"}
    assert (await api.apply(path, changed, dryRun="All", fieldManager="other")).status == 409
    assert (await api.get(path)).body["data"] == {"a": "1"}


@covers("dry-run", "delete", "success")
async def test_a_rehearsed_deletion_deletes_nothing(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    held = config_map("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(path, held)
    assert (await api.delete(f"{path}/a", dryRun="All")).status == 200
    assert (await api.delete(f"{path}/a", {"dryRun": ["All"]})).status == 200
    assert (await api.delete(f"{path}/a", {"dryRun": ["All"], "propagationPolicy": "Foreground"})).status == 200
    assert (await api.delete(f"{path}/held", dryRun="All")).status == 200
    assert (await api.get(f"{path}/a")).status == 200
    assert "deletionTimestamp" not in (await api.get(f"{path}/held")).body["metadata"]
    await api.silent.merge(f"{path}/held", {"metadata": {"finalizers": None}})


@covers("dry-run", "deletecollection", "success")
async def test_a_rehearsed_deletion_of_all_deletes_nothing(api: Api) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"))
    await api.delete(path, dryRun="All")
    assert (await api.get(f"{path}/a")).status == 200


@covers("dry-run", "create", "refusal")
@pytest.mark.parametrize("value", ["Some", "all", "true", ""])
async def test_a_rehearsal_is_all_or_nothing(api: Api, value: str) -> None:
    path = api.path("configmaps")
    await api.post(path, config_map("a"), dryRun=value)
    await api.merge(f"{path}/a", {"data": {"a": "b"}}, dryRun=value)
    await api.delete(f"{path}/a", dryRun=value)
    await api.delete(f"{path}/a", {"dryRun": [value]})
