"""Widgets: a kind whose objects serve as runs in tests, which say when they have finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kardinal.kube import KubeError
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal_local.stack import until_served
from tests.supplychain.chains import API_VERSION, Chains
from tests.support.names import TEAM

__all__ = ["WIDGET", "finish", "install_widgets", "run_template", "runnable", "widget_body", "widgets"]

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")


async def install_widgets(chains: Chains) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": WIDGET.group,
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }
    await chains.world.client.create(CUSTOM_RESOURCE_DEFINITION, definition)
    await until_served(chains.world.client, {"widgets.example.com"})
    await chains.world.until(lambda: _can_be_listed(chains))


async def _can_be_listed(chains: Chains) -> bool:
    """Return whether the storage of the kind is ready: a real server answers 429 for a moment after it serves it."""
    try:
        await chains.world.client.list(WIDGET)
    except KubeError:
        return False
    return True


def widget_body(prefix: str = "run-", **spec: Any) -> JsonObject:
    """Return the body of a template that makes Widgets."""
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"generateName": prefix}, "spec": spec}


def run_template(name: str = "checks", body: JsonObject | None = None, **outputs: str) -> JsonObject:
    """Return a ClusterRunTemplate; its Widgets have the inputs `value` unless `body` says otherwise."""
    body = widget_body(value="$(runnable.spec.inputs.value)$") if body is None else body
    spec = {"template": body, "outputs": outputs}
    return {"apiVersion": API_VERSION, "kind": "ClusterRunTemplate", "metadata": {"name": name}, "spec": spec}


def runnable(name: str = "tests", *, value: Any = "a", template: str = "checks", **spec: Any) -> JsonObject:
    reference = {"runTemplateRef": {"name": template}, "serviceAccountName": "runner"}
    body = {**reference, "inputs": {"value": value}, **spec}
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": API_VERSION, "kind": "Runnable", "metadata": metadata, "spec": body}


async def widgets(chains: Chains) -> Sequence[JsonObject]:
    """Return the Widgets, the newest first, once nothing more happens."""
    await chains.world.settle()
    found = await chains.world.objects(WIDGET)
    return sorted(found, key=lambda obj: int(obj["metadata"]["annotations"]["kardinal.io/sequence"]), reverse=True)


async def finish(chains: Chains, run: JsonObject, *, status: str = "True", **fields: Any) -> None:
    """Let a run finish, with fields in its status."""
    condition = {"type": "Succeeded", "status": status, "message": "done"}
    body = {"status": {"conditions": [condition], **fields}}
    await chains.world.client.patch(WIDGET, run["metadata"]["name"], TEAM, body)
