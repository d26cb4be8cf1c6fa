"""Objects to try a server on."""

from __future__ import annotations

from typing import Any

__all__ = ["config_map", "deployment", "widget", "widget_definition"]

JsonObject = dict[str, Any]


def config_map(name: str, *, labels: dict[str, str] | None = None, **data: str) -> JsonObject:
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def widget_definition(group: str, **version: Any) -> JsonObject:
    """A definition of a small namespaced kind with a status; `version` replaces members of its version v1."""
    parts = {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "weight": {"type": "integer"}},
        },
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    spec = {
        "type": "object",
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 3},
            "colour": {"type": "string", "enum": ["red", "green"]},
            "parts": parts,
        },
        "x-kubernetes-validations": [
            {"rule": "!has(oldSelf.colour) || self.colour == oldSelf.colour", "message": "colour is immutable"}
        ],
    }
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema},
                    "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                    **version,
                }
            ],
        },
    }


def widget(group: str, name: str, *, labels: dict[str, str] | None = None, **spec: Any) -> JsonObject:
    """An object of that kind."""
    metadata = {"name": name} | ({"labels": labels} if labels else {})
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


def deployment(name: str, **spec: Any) -> JsonObject:
    """A Deployment of one container."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "one", "image": "registry.example.com/one:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }
