"""The identities of the programs in a cluster, with the RBAC of deploy/ and nothing more."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kardinal.objects import CONFIG_MAP, NAMESPACE, SERVICE_ACCOUNT, ResourceType

__all__ = [
    "ACCOUNTS",
    "RESOURCES",
    "SYSTEM_NAMESPACE",
    "TEST_EXECUTOR",
    "admission",
    "documents_of",
    "rights",
    "shipped_rights",
]

JsonObject = dict[str, Any]

DEPLOY = Path(__file__).parents[2] / "deploy"
SYSTEM_NAMESPACE = "kardinal-system"
ACCOUNTS = {name: f"kardinal-{name}" for name in ("controller", "agent", "simulator", "supplychain")}
"""Identity of a test -> ServiceAccount."""

_INSTALLED = (
    "controller-rbac.yaml",
    "secrets/every-namespace.yaml",
    "00-namespaces.yaml",
    "controller.yaml",
    "tools/gitops.yaml",
    "versions.yaml",
)
_INSTALLED_OF_AGENT = ("agent/agent.yaml", "agent/control-plane.yaml", "agent/secrets/every-namespace.yaml")
_INSTALLED_OF_SUPPLY_CHAINS = ("supplychain/kinds.yaml", "supplychain/rbac.yaml", "supplychain/supplychain.yaml")
"""Without the roles for people, which would be added to `view` and `edit` of the cluster."""

TEST_EXECUTOR = "test-executor"
"""The ClusterRole that an agent has in tests only."""

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
RESOURCES = {
    resource.kind: resource
    for resource in (
        NAMESPACE,
        SERVICE_ACCOUNT,
        CONFIG_MAP,
        ResourceType(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
        ResourceType(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
        ResourceType(_RBAC, "v1", "Role", "roles"),
        ResourceType(_RBAC, "v1", "RoleBinding", "rolebindings"),
        ResourceType(_ADMISSION, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False),
        ResourceType(
            _ADMISSION,
            "v1",
            "ValidatingAdmissionPolicyBinding",
            "validatingadmissionpolicybindings",
            namespaced=False,
        ),
    )
}
"""The kinds of `rights` and of `admission`, and what they name."""


@cache
def documents_of(pattern: str) -> tuple[JsonObject, ...]:
    """Return the objects in the files of deploy/ that match, in the order in which kubectl applies them."""
    paths = sorted(DEPLOY.glob(pattern))
    return tuple(doc for path in paths for doc in yaml.load_all(path.read_bytes(), yaml.CSafeLoader))


def admission() -> tuple[JsonObject, ...]:
    """Return the admission policies with their bindings, which a local plane does not enforce."""
    return documents_of("admission/*.yaml")


@cache
def shipped_rights() -> tuple[JsonObject, ...]:
    """Return the RBAC of the programs, with Secrets in every namespace, because tests have theirs in many."""
    names = (*_INSTALLED, *_INSTALLED_OF_AGENT, *_INSTALLED_OF_SUPPLY_CHAINS)
    shipped = [doc for name in names for doc in documents_of(name)]
    return tuple(doc for doc in shipped if doc["kind"] in RESOURCES)


@cache
def rights() -> tuple[JsonObject, ...]:
    """Return what has to be in a cluster before a program can run there, in the order in which it is applied."""
    documents = [
        *shipped_rights(),
        # In a world the control plane is also the cluster of the agent.
        _bound("agent", to="kardinal-agent-control-plane"),
        _bound("agent", to="kardinal-agent-control-plane", within=SYSTEM_NAMESPACE),
        # Most tests of the agent give it no shard: it stands in for the one in the controller then.
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": TEST_EXECUTOR},
            "rules": [{"apiGroups": ["kardinal.io"], "resources": ["promotionsteps"], "verbs": ["execute"]}],
        },
        _bound("agent", to=TEST_EXECUTOR),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNTS["simulator"], "namespace": SYSTEM_NAMESPACE},
        },
        # What stands in for the GitOps tool, which may do everything in a cluster as well.
        _bound("simulator", to="cluster-admin"),
    ]
    return tuple(sorted(documents, key=lambda doc: bool(doc["kind"] != "Namespace")))


def _bound(identity: str, *, to: str, within: str | None = None) -> JsonObject:
    """Return the binding of an identity to a ClusterRole, or to a Role of the namespace `within`."""
    account = ACCOUNTS[identity]
    kind = "Role" if within else "ClusterRole"
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": f"test-{account}-{to}"} | ({"namespace": within} if within else {}),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": to},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
    }
