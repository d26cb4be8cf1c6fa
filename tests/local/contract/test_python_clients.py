"""The Python clients that operators are written with, on either server: kubernetes-asyncio and kopf."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import kopf
import pytest
import yaml
from kubernetes_asyncio import client, config, watch

from tests.local.contract.conftest import Cluster
from tests.local.contract.wire import Api


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Path:
    """The administrator's, with certificates as files: the clients would leave temporary ones behind."""
    document = yaml.safe_load(cluster.kubeconfig.read_bytes())
    for entry in (document["clusters"][0]["cluster"], document["users"][0]["user"]):
        for field in [one for one in entry if one.endswith("-data")]:
            path = tmp_path / field
            path.write_bytes(base64.b64decode(entry.pop(field)))
            entry[field.removesuffix("-data")] = str(path)
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
async def typed(kubeconfig: Path) -> AsyncIterator[client.ApiClient]:
    """A client of kubernetes-asyncio."""
    async with await config.new_client_from_config(str(kubeconfig)) as api:
        yield api


@pytest.fixture
async def space(api: Api) -> str:
    """The namespace of this test, which is there."""
    name = api.namespace
    await api.silent.get("/version")
    return name


async def test_kubernetes_asyncio_writes_reads_and_watches_a_typed_kind(space: str, typed: client.ApiClient) -> None:
    core = client.CoreV1Api(typed)
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"app": "x"}), data={"key": "one"})
    created = await core.create_namespaced_config_map(space, body)
    patched = await core.patch_namespaced_config_map("a", space, {"data": {"key": "two"}})
    assert (created.data, patched.data) == ({"key": "one"}, {"key": "two"})
    listed = await core.list_namespaced_config_map(space, label_selector="app=x")
    assert [one.metadata.name for one in listed.items] == ["a"]
    seen = []
    async with watch.Watch() as stream:
        events = stream.stream(
            core.list_namespaced_config_map, space, resource_version=created.metadata.resource_version
        )
        await core.delete_namespaced_config_map("a", space)
        async for event in events:
            seen.append((event["type"], event["object"].data["key"]))
            if event["type"] == "DELETED":
                break
    assert seen == [("MODIFIED", "two"), ("DELETED", "two")]
    with pytest.raises(client.ApiException) as missing:
        await core.read_namespaced_config_map("a", space)
    assert missing.value.status == 404


async def test_kubernetes_asyncio_writes_custom_objects_and_their_status(
    api: Api, space: str, typed: client.ApiClient
) -> None:
    await api.silent.define(api.widgets())
    custom = client.CustomObjectsApi(typed)
    where: dict[str, Any] = {
        "group": api.group,
        "version": "v1",
        "namespace": space,
        "plural": "widgets",
    }
    await custom.create_namespaced_custom_object(body=api.widget("a", size=3), **where)
    merge = "application/merge-patch+json"
    # Its types do not know the argument that its documentation asks for.
    await custom.patch_namespaced_custom_object_status(  # type: ignore[call-arg]
        name="a", body={"status": {"phase": "Up"}}, _content_type=merge, **where
    )
    applied = await custom.patch_namespaced_custom_object(  # type: ignore[call-arg]
        name="a",
        body=api.widget("a", size=5),
        field_manager="python",
        force=True,
        _content_type="application/apply-patch+yaml",
        **where,
    )
    assert (applied["spec"]["size"], applied["status"]["phase"]) == (5, "Up")
    with pytest.raises(client.ApiException) as refused:
        await custom.patch_namespaced_custom_object(  # type: ignore[call-arg]
            name="a", body={"spec": {"size": 0}}, _content_type=merge, **where
        )
    assert refused.value.status == 422


async def test_kopf_runs_an_operator(api: Api, space: str, kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await api.silent.define(api.widgets())
    path = api.path("widgets", group=api.group)
    registry, handled = _operator(api.group)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    stop = asyncio.Event()
    settings = kopf.OperatorSettings()
    settings.posting.level = logging.CRITICAL
    settings.watching.server_timeout = 5
    running = asyncio.create_task(
        kopf.operator(registry=registry, settings=settings, namespaces=[space], standalone=True, stop_flag=stop)
    )
    try:
        await api.silent.post(path, api.widget("a", size=3))

        async def phase_is(wanted: str) -> bool:
            found = await api.silent.get(f"{path}/a")
            return bool(found.body.get("status", {}).get("phase") == wanted)

        await api.until(lambda: phase_is("created-3"))
        await api.silent.merge(f"{path}/a", {"spec": {"size": 4}})
        await api.until(lambda: phase_is("updated-4"))
        # kopf holds it with a finalizer until its handler has seen the end.
        await api.silent.delete(f"{path}/a")
        await api.gone(f"{path}/a")
    finally:
        stop.set()
        await running
    assert handled == ["create 3", "update 4", "delete 4"]


def _operator(group: str) -> tuple[kopf.OperatorRegistry, list[str]]:
    """An operator that says in the status of a widget what it was told."""
    registry = kopf.OperatorRegistry()
    handled: list[str] = []

    @kopf.on.login(registry=registry)
    def login(**arguments: Any) -> kopf.ConnectionInfo | None:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.create(group, "v1", "widgets", registry=registry)
    def created(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        handled.append(f"create {spec['size']}")
        patch.status["phase"] = f"created-{spec['size']}"

    @kopf.on.update(group, "v1", "widgets", registry=registry)
    def updated(spec: kopf.Spec, patch: kopf.Patch, **_: Any) -> None:
        handled.append(f"update {spec['size']}")
        patch.status["phase"] = f"updated-{spec['size']}"

    @kopf.on.delete(group, "v1", "widgets", registry=registry)
    def deleted(spec: kopf.Spec, **_: Any) -> None:
        handled.append(f"delete {spec['size']}")

    return registry, handled
