"""`kubectl apply`, both ways, with what belongs to it: diff, dry run, replace and the way from one to the other."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml

from tests.local.contract.wire import Api
from tests.support.kubectl import Kubectl

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 0
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


def manifest(api: Api, **spec: Any) -> str:
    return yaml.safe_dump(api.widget("a", **spec))


async def test_client_side_apply_creates_changes_and_leaves_alone(run: Kubectl, api: Api, widgets: str) -> None:
    assert await run("apply", "-f", "-", stdin=manifest(api, size=3)) == f"{widgets}/a created\n"
    assert await run("apply", "-f", "-", stdin=manifest(api, size=3)) == f"{widgets}/a unchanged\n"
    assert await run("apply", "-f", "-", stdin=manifest(api, size=4)) == f"{widgets}/a configured\n"
    assert await run("get", widgets, "a", "-o", "jsonpath={.spec.size}") == "4"


async def test_client_side_apply_of_a_built_in_kind_merges_lists_by_name(run: Kubectl) -> None:
    await run("apply", "-f", "-", stdin=DEPLOYMENT)
    await run("set", "image", "deployment/web", "web=ghcr.io/example/web:2.0.0")
    two = DEPLOYMENT + "      - {name: side, image: ghcr.io/example/side:1}\n"
    assert await run("apply", "-f", "-", stdin=two) == "deployment.apps/web configured\n"
    images = await run("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}")
    assert sorted(images.split()) == ["ghcr.io/example/side:1", "ghcr.io/example/web:1.0.0"]
    assert await run("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web configured\n"
    names = await run("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].name}")
    assert names == "web"


async def test_server_side_apply_owns_conflicts_and_forces(run: Kubectl, api: Api, widgets: str) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert await run(*apply, stdin=manifest(api, size=3)) == f"{widgets}/a serverside-applied\n"
    conflict = await run.attempt(*apply, "--field-manager=other", stdin=manifest(api, size=5))
    assert conflict.code == 1
    assert 'conflict with "kubectl": .spec.size' in conflict.err
    await run(*apply, "--field-manager=other", "--force-conflicts", stdin=manifest(api, size=5))
    found = orjson.loads(await run("get", widgets, "a", "-o", "json", "--show-managed-fields"))
    owners = {
        entry["manager"]
        for entry in found["metadata"]["managedFields"]
        if "f:size" in entry["fieldsV1"].get("f:spec", {})
    }
    assert owners == {"other"}


async def test_client_side_apply_can_be_followed_by_server_side_apply(run: Kubectl, api: Api, widgets: str) -> None:
    await run("apply", "-f", "-", stdin=manifest(api, size=3, parts=[{"name": "a"}]))
    await run("apply", "--server-side", "-f", "-", stdin=manifest(api, size=4, parts=[{"name": "a"}]))
    assert await run("get", widgets, "a", "-o", "jsonpath={.spec.size}") == "4"
    await run("apply", "--server-side", "-f", "-", stdin=manifest(api, size=4))
    assert await run("get", widgets, "a", "-o", "jsonpath={.spec.parts}") == "", "what is no longer applied is gone"


@pytest.mark.parametrize("way", [(), ("--server-side",)], ids=["client-side", "server-side"])
async def test_apply_reports_what_the_schema_forbids(
    run: Kubectl, api: Api, widgets: str, way: tuple[str, ...]
) -> None:
    wrong = await run.attempt("apply", *way, "-f", "-", stdin=manifest(api, colour="blue"))
    assert wrong.code == 1
    assert 'spec.colour: Unsupported value: "blue": supported values: "red", "green"' in wrong.err
    unknown = await run.attempt("apply", *way, "-f", "-", stdin=manifest(api, colr="red"))
    assert unknown.code == 1
    assert "colr" in unknown.err
    assert (await run.attempt("get", widgets, "a")).code == 1


async def test_a_rehearsal_changes_nothing_and_diff_shows_what_would_change(
    run: Kubectl, api: Api, widgets: str
) -> None:
    out = await run("apply", "--dry-run=server", "-f", "-", stdin=manifest(api))
    assert out == f"{widgets}/a created (server dry run)\n"
    assert (await run.attempt("get", widgets, "a")).code == 1
    await run("apply", "-f", "-", stdin=manifest(api, size=3))
    for way in ((), ("--server-side",)):
        difference = await run.attempt("diff", *way, "-f", "-", stdin=manifest(api, size=4))
        assert difference.code == 1
        assert "+  size: 4" in difference.out
    assert await run("diff", "-f", "-", stdin=manifest(api, size=3)) == ""


async def test_replace_changes_the_whole_object_or_says_who_was_faster(run: Kubectl, api: Api, widgets: str) -> None:
    await run("create", "-f", "-", stdin=manifest(api, size=3, parts=[{"name": "a"}]))
    assert await run("replace", "-f", "-", stdin=manifest(api, size=4)) == f"{widgets}/a replaced\n"
    assert await run("get", widgets, "a", "-o", "jsonpath={.spec.size}{.spec.parts}") == "4"
    stale = yaml.safe_load(manifest(api, size=5))
    stale["metadata"]["resourceVersion"] = "1"
    conflict = await run.attempt("replace", "-f", "-", stdin=yaml.safe_dump(stale))
    assert "the object has been modified; please apply your changes to the latest version" in conflict.err
    forced = await run("replace", "--force", "-f", "-", stdin=manifest(api, size=6))
    assert forced.splitlines()[-1] == f"{widgets}/a replaced"
    twice = await run.attempt("create", "-f", "-", stdin=manifest(api))
    assert "(AlreadyExists)" in twice.err
