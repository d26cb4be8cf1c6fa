"""OpenAPI documents: what kubectl looks for in them is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kardinal_local.plane.builtin import BUILTIN_KINDS
from kardinal_local.plane.handlers.openapi import document
from kardinal_local.plane.kinds.crds import kinds_of
from kardinal_local.plane.kinds.kind import Kind
from tests.support.plane import shipped_definitions

SHAPELESS = Kind("example.com", "v1", "Job", "jobs", "job", "JobList", custom=True)
BUILTIN = {kind.kind: kind for kind in BUILTIN_KINDS}
DEPLOYMENT = BUILTIN["Deployment"]
NAMESPACE = BUILTIN["Namespace"]
CUSTOM = [kind for definition in shipped_definitions() for kind in kinds_of(definition) if kind.group == "kardinal.io"]

DOCUMENTS = {
    "apps": document("apps", "v1", [DEPLOYMENT]),
    "core": document("", "v1", [NAMESPACE]),
    "kardinal": document("kardinal.io", "v1alpha1", CUSTOM),
    "example": document("example.com", "v1", [SHAPELESS]),
}


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for value in node:
            yield from references(value)


def schema_of(made: dict[str, Any], kind: str) -> Any:
    """Return the component that carries the kind, as clients find it."""
    [found] = [
        schema
        for schema in made["components"]["schemas"].values()
        if any(identity["kind"] == kind for identity in schema.get("x-kubernetes-group-version-kind", ()))
    ]
    return found


@pytest.mark.parametrize("made", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_every_reference_leads_somewhere(made: dict[str, Any]) -> None:
    found = set(references(made))
    assert found
    for reference in found:
        assert reference.removeprefix("#/components/schemas/") in made["components"]["schemas"]


@pytest.mark.parametrize("made", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_every_patch_takes_field_validation_and_dry_run_and_says_of_what_kind(made: dict[str, Any]) -> None:
    patches = [operations["patch"] for operations in made["paths"].values() if "patch" in operations]
    assert patches
    for patch in patches:
        assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {item["name"] for item in patch["parameters"]}
        assert patch["x-kubernetes-group-version-kind"]["kind"]
        assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


def test_strategic_merge_is_offered_for_built_in_kinds_alone() -> None:
    def offered(name: str) -> set[bool]:
        return {
            "application/strategic-merge-patch+json" in operations["patch"]["requestBody"]["content"]
            for operations in DOCUMENTS[name]["paths"].values()
            if "patch" in operations
        }

    assert offered("apps") == {True}
    assert offered("kardinal") == {False}


def test_paths_follow_scope_and_subresources() -> None:
    assert set(DOCUMENTS["core"]["paths"]) == {
        "/api/v1/namespaces",
        "/api/v1/namespaces/{name}",
        "/api/v1/namespaces/{name}/status",
    }
    assert set(DOCUMENTS["apps"]["paths"]) == {
        "/apis/apps/v1/deployments",
        "/apis/apps/v1/namespaces/{namespace}/deployments",
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
        "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status",
    }
    assert not any(path.endswith("/status") for path in DOCUMENTS["example"]["paths"])
    for path, operations in DOCUMENTS["kardinal"]["paths"].items():
        assert operations["get"]["x-kubernetes-group-version-kind"]["group"] == "kardinal.io", path


def test_a_schema_keeps_its_fields_and_gets_an_identity() -> None:
    bundle = schema_of(DOCUMENTS["kardinal"], "Bundle")
    assert {"apiVersion", "kind", "metadata", "spec", "status"} <= bundle["properties"].keys()
    assert bundle["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    assert bundle["description"]
    names = DOCUMENTS["kardinal"]["components"]["schemas"]
    assert {"io.kardinal.v1alpha1.Bundle", "io.kardinal.v1alpha1.BundleList"} <= names.keys()


def test_a_pod_template_keeps_the_merge_keys_and_refers_to_metadata() -> None:
    schemas = DOCUMENTS["apps"]["components"]["schemas"]
    template = schemas["io.k8s.api.core.v1.PodTemplateSpec"]["properties"]
    assert template["metadata"] == {
        "default": {},
        "allOf": [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
    }
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]
    limits = schemas["io.k8s.api.core.v1.ResourceRequirements"]["properties"]["limits"]
    assert limits["additionalProperties"] == {
        "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"
    }


def test_a_kind_without_a_schema_preserves_everything() -> None:
    job = schema_of(DOCUMENTS["example"], "Job")
    assert job["x-kubernetes-preserve-unknown-fields"] is True
    assert "com.example.v1.Job" in DOCUMENTS["example"]["components"]["schemas"]
