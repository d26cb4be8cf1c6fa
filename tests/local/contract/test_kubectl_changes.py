"""What a person changes with kubectl: edit, label, annotate, patch, scale, set, roll out, delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.contract.wire import Api
from tests.support.kubectl import Kubectl


@pytest.fixture
async def widget(run: Kubectl, api: Api, widgets: str) -> str:
    """A widget of size 3, as `type/name`."""
    await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=3))
    return f"{widgets}/a"


async def spec(run: Kubectl, name: str) -> Any:
    return yaml.safe_load(await run("get", name, "-o", "yaml")).get("spec")


async def test_edit_changes_what_the_editor_changed(run: Kubectl, widget: str, tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/size: 3/size: 9/" "$1"\n')
    editor.chmod(0o700)
    editing = replace(run, environment={"KUBE_EDITOR": str(editor)})
    assert await editing("edit", widget) == f"{widget} edited\n"
    assert (await spec(run, widget))["size"] == 9
    editor.write_text("#!/bin/sh\ntrue\n")
    assert (await editing.attempt("edit", widget)).err == "Edit cancelled, no changes made.\n"


async def test_labels_and_annotations_come_change_and_go(run: Kubectl, widget: str) -> None:
    await run("label", widget, "shard=one")
    kind = widget.partition("/")[0]
    assert await run("get", kind, "-l", "shard=one", "-o", "name") == f"{widget}\n"
    assert await run("get", kind, "-l", "shard notin (one)", "-o", "name") == ""
    taken = await run.attempt("label", widget, "shard=two")
    assert taken.code == 1
    await run("label", widget, "shard=two", "--overwrite")
    await run("label", widget, "shard-")
    assert await run("get", kind, "-l", "shard", "-o", "name") == ""
    await run("annotate", widget, "example.com/note=hello")
    assert "hello" in await run("get", widget, "-o", "jsonpath={.metadata.annotations}")
    wrong = await run.attempt("label", widget, "shard=not/allowed")
    assert wrong.code == 1


async def test_every_kind_of_patch_and_the_status(run: Kubectl, widget: str) -> None:
    await run("patch", widget, "--type=merge", "-p", '{"spec":{"size":4}}')
    await run("patch", widget, "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":5}]')
    await run("patch", widget, "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"},"spec":{}}')
    assert await run("get", widget, "-o", "jsonpath={.spec.size}{.status.phase}") == "5Up"
    strategic = await run.attempt("patch", widget, "--type=strategic", "-p", '{"spec":{"size":6}}')
    assert "application/strategic-merge-patch+json is not supported" in strategic.err
    await run("create", "configmap", "settings", "--from-literal=a=b")
    await run("patch", "configmap", "settings", "--type=strategic", "-p", '{"data":{"a":null,"c":"d"}}')
    assert await run("get", "configmap", "settings", "-o", "jsonpath={.data}") == '{"c":"d"}'
    unchanged = await run("patch", "configmap", "settings", "--type=merge", "-p", '{"data":{"c":"d"}}')
    assert unchanged == "configmap/settings patched (no change)\n"


async def test_a_deployment_is_scaled_set_and_rolled_out(run: Kubectl, api: Api) -> None:
    await run("create", "deployment", "web", "--image=example/web:1", "--replicas=0")
    await run("set", "image", "deployment/web", "web=example/web:2")
    await run("set", "env", "deployment/web", "COLOUR=red")
    containers = (await spec(run, "deployment/web"))["template"]["spec"]["containers"]
    assert [(one["image"], one["env"]) for one in containers] == [
        ("example/web:2", [{"name": "COLOUR", "value": "red"}])
    ]
    if not api.real:
        # What the Deployment controller says of one that wants no pods.
        status = {"status": {"observedGeneration": 3, "conditions": []}}
        await api.silent.merge(api.path("deployments", "web", group="apps", subresource="status"), status)
    assert await run("rollout", "status", "deployment/web") == 'deployment "web" successfully rolled out\n'
    await run("rollout", "pause", "deployment/web")
    assert (await spec(run, "deployment/web"))["paused"] is True
    await run("rollout", "resume", "deployment/web")
    await run("rollout", "restart", "deployment/web")
    template = (await spec(run, "deployment/web"))["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    await run("rollout", "pause", "deployment/web")
    assert await run("scale", "deployment/web", "--replicas=2") == "deployment.apps/web scaled\n"
    assert (await spec(run, "deployment/web"))["replicas"] == 2
    stale = await run.attempt("scale", "deployment/web", "--current-replicas=7", "--replicas=1")
    assert stale.code == 1
    assert "Expected replicas to be 7, was 2" in stale.err


async def test_a_custom_kind_is_scaled_by_its_scale(run: Kubectl, api: Api) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    await api.silent.define(api.widgets(subresources={"status": {}, "scale": paths}))
    await api.silent.post(api.path("widgets", group=api.group), api.widget("a", size=3))
    await run("scale", f"widget.{api.group}/a", "--replicas=5")
    assert (await spec(run, f"widget.{api.group}/a"))["size"] == 5


async def test_delete_waits_for_what_it_deletes(run: Kubectl, api: Api, widget: str) -> None:
    deleted = await run("delete", widget)
    assert deleted.startswith(f'{widget.partition("/")[0]} "a" deleted')
    gone = await run.attempt("get", widget)
    assert gone.err == f'Error from server (NotFound): widgets.{api.group} "a" not found\n'
    assert await run("delete", widget, "--ignore-not-found") == ""
    await run("create", "configmap", "owner")
    await run("delete", "configmap", "owner", "--cascade=foreground")
    assert (await run.attempt("get", "configmap", "owner")).code == 1
    for name in ("one", "two"):
        await run("create", "configmap", name, "--from-literal=a=b")
    await run("label", "configmap", "one", "two", "set=both")
    await run("delete", "configmaps", "-l", "set=both")
    assert await run("get", "configmaps", "-l", "set=both", "-o", "name") == ""
    space = f"{api.namespace}-gone"
    await run("create", "namespace", space)
    await run("create", "configmap", "inside", "-n", space)
    await run("delete", "namespace", space)
    assert (await run.attempt("get", "namespace", space)).code == 1
