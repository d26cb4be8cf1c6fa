"""The identities of the programs in a cluster, with the RBAC of deploy/ and nothing more."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kardinal.objects import NAMESPACE, SERVICE_ACCOUNT, ResourceType

__all__ = ["ACCOUNTS", "RESOURCES", "SYSTEM_NAMESPACE", "rights"]

JsonObject = dict[str, Any]

DEPLOY = Path(__file__).parents[2] / "deploy"
SYSTEM_NAMESPACE = "kardinal-system"
ACCOUNTS = {name: f"kardinal-{name}" for name in ("controller", "agent", "simulator")}
"""Identity of a test -> ServiceAccount."""

_RBAC = "rbac.authorization.k8s.io"
RESOURCES = {
    resource.kind: resource
    for resource in (
        NAMESPACE,
        SERVICE_ACCOUNT,
        ResourceType(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False),
        ResourceType(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    )
}
"""The kinds of `rights`."""


@cache
def rights() -> tuple[JsonObject, ...]:
    """Return what has to be in a cluster before a program can run there, in the order in which it is applied."""
    shipped = [doc for path in sorted(DEPLOY.rglob("*.yaml")) for doc in yaml.safe_load_all(path.read_bytes())]
    documents = [doc for doc in shipped if doc["kind"] in RESOURCES]
    documents += [
        # In a world the control plane is also the cluster of the agent.
        _bound("agent", to="kardinal-agent-control-plane"),
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNTS["simulator"], "namespace": SYSTEM_NAMESPACE},
        },
        # What stands in for the GitOps tool, which may do everything in a cluster as well.
        _bound("simulator", to="cluster-admin"),
    ]
    return tuple(sorted(documents, key=lambda doc: bool(doc["kind"] != "Namespace")))


def _bound(identity: str, *, to: str) -> JsonObject:
    account = ACCOUNTS[identity]
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"test-{account}-{to}"},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": to},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
    }
