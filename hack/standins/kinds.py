"""The kinds of the stand-ins, and what to apply for each: its definition, its account and its Role."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, SERVICE_ACCOUNT, JsonObject, ResourceType

__all__ = ["GIT_REPOSITORY", "IMAGE", "KINDS", "TEST_RUN", "manifests"]

_GROUP = "standins.example.com"
_RBAC = "rbac.authorization.k8s.io"
_ROLE = ResourceType(_RBAC, "v1", "Role", "roles")
_BINDING = ResourceType(_RBAC, "v1", "RoleBinding", "rolebindings")
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}

GIT_REPOSITORY = ResourceType(_GROUP, "v1", "GitRepository", "gitrepositories")
IMAGE = ResourceType(_GROUP, "v1", "Image", "images")
TEST_RUN = ResourceType(_GROUP, "v1", "TestRun", "testruns")

KINDS: Mapping[str, ResourceType] = {"source": GIT_REPOSITORY, "builder": IMAGE, "runner": TEST_RUN}
"""The kind of each stand-in, which is also the name of its account."""


def manifests(namespace: str) -> Iterator[tuple[ResourceType, JsonObject]]:
    """Yield what the stand-ins need to work in a namespace, in the order in which it is applied."""
    for kind in KINDS.values():
        yield CUSTOM_RESOURCE_DEFINITION, _definition(kind)
    for account, kind in KINDS.items():
        head = {"metadata": {"name": account, "namespace": namespace}}
        yield SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", **head}
        rules = [
            {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [kind.group], "resources": [f"{kind.plural}/status"], "verbs": ["patch"]},
        ]
        yield _ROLE, {"apiVersion": f"{_RBAC}/v1", "kind": "Role", **head, "rules": rules}
        reference = {"apiGroup": _RBAC, "kind": "Role", "name": account}
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", **head}
        yield _BINDING, {**binding, "roleRef": reference, "subjects": [subject]}


def _definition(kind: ResourceType) -> JsonObject:
    names = {"kind": kind.kind, "plural": kind.plural, "singular": kind.kind.lower(), "listKind": f"{kind.kind}List"}
    schema = {
        "type": "object",
        "description": f"Stand-in: a {kind.kind} of hack/standins, for tests and examples.",
        "properties": {"spec": _OPEN, "status": _OPEN},
    }
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {"group": kind.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
