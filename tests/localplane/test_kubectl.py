"""Real kubectl, every promised version, against a real plane."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from kardinal.localplane import LocalPlane
from tests.localplane.wire import Http, widget, widget_definition
from tests.support.kubectl import Kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: ghcr.io/example/web:1.0.0
        ports:
        - containerPort: 8080
"""


@pytest.fixture
def run(kubectl: Callable[[Path], Kubectl], plane: LocalPlane, widgets: str) -> Kubectl:
    """kubectl as admin, on a plane that knows widgets."""
    return kubectl(plane.kubeconfig)


def manifest(**spec: Any) -> str:
    return yaml.safe_dump(widget("a", **spec))


async def test_client_side_apply_creates_changes_and_leaves_alone(run: Kubectl) -> None:
    assert await run("apply", "-f", "-", stdin=manifest(size=3)) == "widget.example.com/a created\n"
    assert await run("apply", "-f", "-", stdin=manifest(size=3)) == "widget.example.com/a unchanged\n"
    assert await run("apply", "-f", "-", stdin=manifest(size=4)) == "widget.example.com/a configured\n"
    assert await run("get", "widget", "a", "-o", "jsonpath={.spec.size}") == "4"


async def test_client_side_apply_of_a_built_in_kind_merges_lists_by_name(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=DEPLOYMENT)
    await run("set", "image", "deployment/web", "web=ghcr.io/example/web:2.0.0")
    two = DEPLOYMENT.replace("2.0.0", "1.0.0") + "      - {name: side, image: ghcr.io/example/side:1}\n"
    assert await run("apply", "-f", "-", stdin=two) == "deployment.apps/web configured\n"
    images = await run("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
    assert sorted(images.split()) == ["ghcr.io/example/side:1", "ghcr.io/example/web:1.0.0"]
    assert await run("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web configured\n"
    names = await run("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}")
    assert names == "web"


async def test_server_side_apply_owns_conflicts_and_forces(run: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert await run(*apply, stdin=manifest(size=3)) == "widget.example.com/a serverside-applied\n"
    conflict = await run.attempt(*apply, "--field-manager=other", stdin=manifest(size=5))
    assert conflict.code != 0
    assert 'conflict with "kubectl": .spec.size' in conflict.err
    await run(*apply, "--field-manager=other", "--force-conflicts", stdin=manifest(size=5))
    found = orjson.loads(await run("get", "widget", "a", "-o", "json", "--show-managed-fields"))
    owners = {
        entry["manager"]
        for entry in found["metadata"]["managedFields"]
        if "f:size" in entry["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"other"}


async def test_client_side_apply_can_be_followed_by_server_side_apply(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=manifest(size=3, colour="red"))
    await run("apply", "--server-side", "-f", "-", stdin=manifest(size=4, colour="red"))
    assert await run("get", "widget", "a", "-o", "jsonpath={.spec.size}") == "4"


async def test_apply_reports_what_the_schema_forbids(run: Kubectl) -> None:
    wrong = await run.attempt("apply", "-f", "-", stdin=manifest(colour="blue"))
    assert wrong.code == 1
    assert 'spec.colour: Unsupported value: "blue": supported values: "red", "green"' in wrong.err
    unknown = await run.attempt("apply", "-f", "-", stdin=manifest(colr="red"))
    assert unknown.code == 1
    assert 'unknown field "spec.colr"' in unknown.err


async def test_get_prints_the_columns_of_the_definition(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=manifest(size=7))
    assert [line.split() for line in (await run("get", "wd")).splitlines()] == [["NAME", "SIZE"], ["a", "7"]]
    assert await run("get", "widgets", "-o", "name") == "widget.example.com/a\n"
    found = yaml.safe_load(await run("get", "widget", "a", "-o", "yaml"))
    assert (found["kind"], found["spec"]["size"]) == ("Widget", 7)
    everywhere = await run("get", "widgets", "--all-namespaces")
    assert [line.split() for line in everywhere.splitlines()] == [["NAMESPACE", "NAME", "SIZE"], ["default", "a", "7"]]


async def test_get_prints_built_in_kinds_as_people_know_them(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=DEPLOYMENT)
    await run("create", "configmap", "cm", "--from-literal=a=b")
    deployments = [line.split() for line in (await run("get", "deployments")).splitlines()]
    assert deployments[0] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert deployments[1][:4] == ["web", "0/1", "0", "0"]
    config_maps = [line.split() for line in (await run("get", "cm")).splitlines()]
    assert config_maps[0] == ["NAME", "DATA", "AGE"]
    assert config_maps[1][:2] == ["cm", "1"]


async def test_get_watches(run: Kubectl, http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a", size=1))
    process = await asyncio.create_subprocess_exec(
        run.binary,
        "get",
        "widgets",
        "-w",
        "--no-headers",
        stdout=asyncio.subprocess.PIPE,
        env={"KUBECONFIG": str(run.kubeconfig), "HOME": str(run.home)},
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).split() == [b"a", b"1"]
    await http.merge(f"{widgets}/a", {"spec": {"size": 2}})
    assert (await process.stdout.readline()).split() == [b"a", b"2"]
    await http.post(widgets, widget("b", size=3))
    assert (await process.stdout.readline()).split() == [b"b", b"3"]
    process.terminate()
    await process.communicate()


async def test_describe_shows_an_object_and_its_events(run: Kubectl, http: Http, widgets: str) -> None:
    created = await http.post(widgets, widget("a", size=7))
    regarding = {"kind": "Widget", "name": "a", "namespace": "default", "uid": created.body["metadata"]["uid"]}
    event = {
        "metadata": {"name": "a.1"},
        "regarding": regarding | {"apiVersion": "example.com/v1"},
        "reason": "Polished",
        "note": "it shines",
        "type": "Normal",
        "eventTime": created.body["metadata"]["creationTimestamp"].replace("Z", ".000000Z"),
        "action": "Polish",
        "reportingController": "example.com/polisher",
        "reportingInstance": "polisher-0",
    }
    assert (await http.post("/apis/events.k8s.io/v1/namespaces/default/events", event)).status == 201
    described = await run("describe", "widget", "a")
    assert "Size:  7" in described
    assert "Polished" in described
    assert "it shines" in described
    await run("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "ghcr.io/example/web:1.0.0" in await run("describe", "deployment", "web")
    assert "it shines" in await run("events")


async def test_wait_returns_when_the_condition_holds(run: Kubectl, http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    waiting = asyncio.create_task(run("wait", "--for=jsonpath={.status.phase}=Up", "widget/a", "--timeout=20s"))
    await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}})
    assert await waiting == "widget.example.com/a condition met\n"
    gone = asyncio.create_task(run("wait", "--for=delete", "widget/a", "--timeout=20s"))
    await http.delete(f"{widgets}/a")
    await gone
    late = await run.attempt("wait", "--for=condition=Ready", "crd/widgets.example.com", "--timeout=1s")
    assert late.code == 1
    assert "timed out waiting for the condition" in late.err


async def test_wait_works_on_a_watch_list_too(run: Kubectl, http: Http, widgets: str) -> None:
    await http.post(widgets, widget("a"))
    with_watch_list = Kubectl(run.binary, run.kubeconfig, run.home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBE_FEATURE_WatchListClient", "true")
        waiting = asyncio.create_task(
            with_watch_list("wait", "--for=jsonpath={.status.phase}=Up", "widget/a", "--timeout=20s")
        )
        await http.merge(f"{widgets}/a/status", {"status": {"phase": "Up"}})
        assert await waiting == "widget.example.com/a condition met\n"


async def test_delete_waits_for_what_it_deletes(run: Kubectl, http: Http) -> None:
    await run("create", "namespace", "team")
    await run("create", "configmap", "cm", "-n", "team", "--from-literal=a=b")
    assert await run("delete", "namespace", "team") == 'namespace "team" deleted\n'
    assert (await http.get("/api/v1/namespaces/team")).status == 404
    await run("apply", "-f", "-", stdin=manifest())
    await run("delete", "widget", "a", "--cascade=foreground")
    assert (await run.attempt("get", "widget", "a")).err == (
        'Error from server (NotFound): widgets.example.com "a" not found\n'
    )


async def test_edit_changes_what_the_editor_changed(run: Kubectl, tmp_path: Path) -> None:
    await run("apply", "-f", "-", stdin=manifest(size=3))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/size: 3/size: 9/" "$1"\n')
    editor.chmod(0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBE_EDITOR", str(editor))
        assert await run("edit", "widget", "a") == "widget.example.com/a edited\n"
    assert await run("get", "widget", "a", "-o", "jsonpath={.spec.size}") == "9"


async def test_label_annotate_and_patch(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=manifest(size=3))
    await run("label", "widget", "a", "shard=one")
    await run("annotate", "widget", "a", "note=hello")
    assert await run("get", "widgets", "-l", "shard=one", "-o", "name") == "widget.example.com/a\n"
    assert (await run.attempt("label", "widget", "a", "shard=two")).code == 1
    await run("label", "widget", "a", "shard-")
    assert await run("get", "widgets", "-l", "shard", "-o", "name") == ""
    await run("patch", "widget", "a", "--type=merge", "-p", '{"spec":{"size":4}}')
    await run("patch", "widget", "a", "--type=json", "-p", '[{"op":"replace","path":"/spec/size","value":5}]')
    await run("patch", "widget", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Up"}}')
    assert await run("get", "widget", "a", "-o", "jsonpath={.spec.size}{.status.phase}") == "5Up"


async def test_explain_reads_the_schema(run: Kubectl) -> None:
    explained = await run("explain", "widget.spec")
    assert "KIND:       Widget" in explained
    assert "colour" in explained
    assert "enum: red, green" in explained
    assert "replicas" in await run("explain", "deployment.spec")


async def test_typed_clients_create_what_they_encode_as_protobuf(run: Kubectl, http: Http) -> None:
    await run("create", "configmap", "cm", "--from-literal=a=b")
    await run("create", "secret", "generic", "secret", "--from-literal=a=b")
    await run("create", "namespace", "team")
    await run("create", "serviceaccount", "robot")
    assert (await http.get("/api/v1/namespaces/default/configmaps/cm")).body["data"] == {"a": "b"}
    assert (await http.get("/api/v1/namespaces/default/secrets/secret")).body["data"] == {"a": "Yg=="}
    assert await run("auth", "can-i", "create", "pods") == "yes\n"
    assert "admin" in await run("auth", "whoami")


async def test_definitions_are_applied_and_waited_for(
    kubectl: Callable[[Path], Kubectl], plane: LocalPlane, tmp_path: Path
) -> None:
    run = kubectl(plane.kubeconfig)
    (tmp_path / "crd.json").write_bytes(orjson.dumps(widget_definition()))
    await run("apply", "-f", str(tmp_path / "crd.json"))
    await run("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=10s")
    await run("apply", "-f", "-", stdin=manifest(size=3))
    assert "widgets" in await run("api-resources", "--api-group=example.com")
    assert await run("get", "all") == ""


async def test_server_side_dry_run_changes_nothing(run: Kubectl) -> None:
    out = await run("apply", "--dry-run=server", "-f", "-", stdin=manifest())
    assert out == "widget.example.com/a created (server dry run)\n"
    assert (await run.attempt("get", "widget", "a")).code == 1
    await run("apply", "-f", "-", stdin=manifest(size=3))
    difference = await run.attempt("diff", "-f", "-", stdin=manifest(size=4))
    assert difference.code == 1
    assert "+  size: 4" in difference.out
