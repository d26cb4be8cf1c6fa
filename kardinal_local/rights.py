"""The RBAC rules of the programs of `kardinal local`, the same as `deploy/` has for a cluster.

If the programs had all permissions on a laptop, a missing rule would be noticed only in a cluster. The manifests of
`deploy/` are not part of the package, so the rules are repeated here; a test compares them. With supply chains they do
have all: the owner of the laptop names the accounts that stamp, and they need no Role there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kardinal.objects import CONFIG_MAP, SERVICE_ACCOUNT, ResourceType
from kardinal.promotion.api.names import SYSTEM_NAMESPACE, VERSIONS

__all__ = ["OWN_RIGHTS", "RIGHTS", "SUPPLY_CHAIN_RIGHTS", "manifests", "supply_chain_manifests"]

JsonObject = dict[str, Any]

_RBAC = "rbac.authorization.k8s.io"
_ROLE = ResourceType(_RBAC, "v1", "ClusterRole", "clusterroles", namespaced=False)
_BINDING = ResourceType(_RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_NAMESPACED_ROLE = ResourceType(_RBAC, "v1", "Role", "roles")
_NAMESPACED_BINDING = ResourceType(_RBAC, "v1", "RoleBinding", "rolebindings")


def _rule(verbs: str, group: str, resources: str) -> JsonObject:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


_EVENTS = _rule("get create patch", "events.k8s.io", "events")
_SECRETS = (_rule("get", "", "secrets"),)
_WORKLOADS = (
    _rule("list watch", "apps", "deployments statefulsets daemonsets"),
    _rule("list watch", "batch", "jobs cronjobs"),
    _rule("list watch", "", "pods"),
)
_SCRAPES = (
    _rule("create", "authentication.k8s.io", "tokenreviews"),
    _rule("create", "authorization.k8s.io", "subjectaccessreviews"),
)
_NAMESPACES = _rule("list watch", "", "namespaces")

RIGHTS: dict[str, tuple[JsonObject, ...]] = {
    "kardinal-controller": (
        _rule(
            "list watch",
            "kardinal.io",
            "pipelines bundles promotionsteps policygates approvals metricchecks subscriptions",
        ),
        _rule("get create delete", "kardinal.io", "bundles"),
        _rule("get create delete", "kardinal.io", "approvals"),
        _rule("create patch delete", "kardinal.io", "promotionsteps policygates"),
        _rule(
            "patch",
            "kardinal.io",
            "pipelines/status bundles/status promotionsteps/status policygates/status approvals/status "
            "metricchecks/status subscriptions/status",
        ),
        _rule("get list watch create patch delete", "experimental.kro.run", "graphs"),
        _rule("patch", "experimental.kro.run", "graphs/status"),
        _rule("list watch create delete", "experimental.kro.run", "graphrevisions"),
        _rule("patch", "experimental.kro.run", "graphrevisions/status"),
        _EVENTS,
        *_WORKLOADS,
        _NAMESPACES,
        *_SCRAPES,
        _rule("execute", "kardinal.io", "promotionsteps"),
    ),
    "kardinal-controller-secrets": _SECRETS,
    "kardinal-agent": (*_WORKLOADS, _NAMESPACES, *_SCRAPES),
    "kardinal-agent-secrets": _SECRETS,
    "kardinal-tools": (
        _rule("list watch", "argoproj.io", "applications rollouts"),
        _rule("list watch", "apps", "replicasets"),
        _rule("list watch", "kustomize.toolkit.fluxcd.io", "kustomizations"),
        _rule("list watch", "helm.toolkit.fluxcd.io", "helmreleases"),
        _rule("list watch", "source.toolkit.fluxcd.io", "gitrepositories"),
        _rule("list watch", "flagger.app", "canaries"),
    ),
    "kardinal-agent-control-plane": (
        _rule("list watch", "kardinal.io", "pipelines promotionsteps policygates bundles metricchecks"),
        _rule("list watch", "experimental.kro.run", "graphs"),
        _rule("patch", "kardinal.io", "promotionsteps/status pipelines/status"),
        _rule("patch", "kardinal.io", "promotionsteps"),
        _rule("report", "kardinal.io", "pipelines"),
        _EVENTS,
    ),
}
"""The rules by ClusterRole. Access to all Secrets is granted, because they belong to the owner of the machine."""

OWN_RIGHTS = (
    _rule("create", "", "secrets"),
    {**_rule("get", "", "secrets"), "resourceNames": ["kardinal-attestation", "kardinal-ui"]},
    {**_rule("patch", "", "configmaps"), "resourceNames": [VERSIONS]},
)
"""The rules of the controller's Role in `kardinal-system`."""

SUPPLY_CHAIN_RIGHTS: dict[str, tuple[JsonObject, ...]] = {
    "kardinal-supplychain": (
        _rule(
            "list watch",
            "carto.run",
            "workloads deliverables runnables clustersupplychains clusterdeliveries clustersourcetemplates "
            "clusterimagetemplates clusterconfigtemplates clusterdeploymenttemplates clustertemplates "
            "clusterruntemplates",
        ),
        _rule(
            "patch",
            "carto.run",
            "workloads/status deliverables/status runnables/status clustersupplychains/status clusterdeliveries/status",
        ),
        _EVENTS,
        _rule("list watch", "", "serviceaccounts"),
        _rule("list watch", "rbac.authorization.k8s.io", "roles rolebindings clusterrolebindings"),
        _rule("list watch", "apiextensions.k8s.io", "customresourcedefinitions"),
        *_SCRAPES,
    ),
    "kardinal-supplychain-accounts": (_rule("impersonate", "", "serviceaccounts"),),
    "kardinal-supplychain-every-kind": (_rule("list watch", "*", "*"),),
}
"""The rules of supply chains by ClusterRole: those of `cluster-wide`, because all has one owner on a laptop."""

_GIVEN = {
    "kardinal-controller": ("kardinal-controller", "kardinal-controller-secrets", "kardinal-tools"),
    # On the local plane, the control plane is also the cluster of the agent.
    "kardinal-agent": ("kardinal-agent", "kardinal-agent-secrets", "kardinal-agent-control-plane", "kardinal-tools"),
    # The simulator simulates a GitOps tool, which has all permissions in a cluster as well.
    "kardinal-simulator": ("cluster-admin",),
}
"""The ClusterRoles of each ServiceAccount."""


_CONTROLLER = "kardinal-controller"


def manifests() -> Iterator[tuple[ResourceType, JsonObject]]:
    """Yield the ServiceAccounts, roles and bindings to apply, in this order, each with its resource type."""
    yield from _roles(RIGHTS)
    for account, roles in _GIVEN.items():
        yield from _account(account, roles)
    yield _NAMESPACED_ROLE, {**_head(_NAMESPACED_ROLE, _CONTROLLER), "rules": list(OWN_RIGHTS)}
    yield CONFIG_MAP, _head(CONFIG_MAP, VERSIONS)
    granting = _granting(_NAMESPACED_ROLE, _CONTROLLER, account=_CONTROLLER)
    yield _NAMESPACED_BINDING, _head(_NAMESPACED_BINDING, _CONTROLLER) | granting


def supply_chain_manifests() -> Iterator[tuple[ResourceType, JsonObject]]:
    """Yield what `manifests` does for the program of supply chains, and all rights for every ServiceAccount."""
    yield from _roles(SUPPLY_CHAIN_RIGHTS)
    yield from _account("kardinal-supplychain", SUPPLY_CHAIN_RIGHTS)
    everyone = {"apiGroup": _RBAC, "kind": "Group", "name": "system:serviceaccounts"}
    yield (
        _BINDING,
        {
            **_head(_BINDING, "kardinal-every-account"),
            "roleRef": {"apiGroup": _RBAC, "kind": _ROLE.kind, "name": "cluster-admin"},
            "subjects": [everyone],
        },
    )


def _roles(rights: Mapping[str, tuple[JsonObject, ...]]) -> Iterator[tuple[ResourceType, JsonObject]]:
    for role, rules in rights.items():
        yield _ROLE, {**_head(_ROLE, role), "rules": list(rules)}


def _account(account: str, roles: Iterable[str]) -> Iterator[tuple[ResourceType, JsonObject]]:
    yield SERVICE_ACCOUNT, _head(SERVICE_ACCOUNT, account)
    for role in roles:
        name = role if role == account else f"{account}-{role}"
        yield _BINDING, _head(_BINDING, name) | _granting(_ROLE, role, account=account)


def _head(resource: ResourceType, name: str) -> JsonObject:
    where = {"namespace": SYSTEM_NAMESPACE} if resource.namespaced else {}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name, **where}}


def _granting(role: ResourceType, name: str, *, account: str) -> JsonObject:
    return {
        "roleRef": {"apiGroup": _RBAC, "kind": role.kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": SYSTEM_NAMESPACE}],
    }
