"""The built-in kinds this server serves.

Those that kardinal itself reads and writes, and those that a rendered environment directory or `deploy/` may hold.
Nothing runs behind them: a Deployment is a record until a status is reported for it, a ResourceQuota limits
nothing. What differs from kind to kind on a real server (who counts generations, what a write to the status leaves
alone) is said here, row by row.
"""

from __future__ import annotations

from dataclasses import replace

from kardinal_local.plane.builtin.events import EVENTS_VIEW
from kardinal_local.plane.builtin.typed import BuiltinType
from kardinal_local.plane.kinds import Kind, ScalePaths

__all__ = ["BUILTIN_KINDS", "CUSTOM_RESOURCE_DEFINITION", "NAMESPACE"]

_RBAC = "rbac.authorization.k8s.io"
_CREATED_BY_UPDATE = {
    ("", "Endpoints"),
    ("", "Event"),
    ("", "LimitRange"),
    ("", "Service"),
    ("coordination.k8s.io", "Lease"),
    ("events.k8s.io", "Event"),
}
_RETURNS_DELETED = {
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "ResourceQuota"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("storage.k8s.io", "StorageClass"),
}


def _kind(
    group: str,
    kind: str,
    plural: str,
    *short_names: str,
    version: str = "v1",
    namespaced: bool = True,
    categories: tuple[str, ...] = (),
    generation: bool = False,
    unconditional_update: bool = True,
) -> Kind:
    return Kind(
        group,
        version,
        kind,
        plural,
        singular=kind.lower(),
        list_kind=f"{kind}List",
        namespaced=namespaced,
        short_names=short_names,
        categories=categories,
        generation=generation,
        unconditional_update=unconditional_update,
        created_by_update=(group, kind) in _CREATED_BY_UPDATE or group == _RBAC,
        returns_deleted=(group, kind) in _RETURNS_DELETED,
        typed=BuiltinType(group, version, kind),
    )


def _with_status(kind: Kind, *keeps: str) -> Kind:
    """The kind with a status endpoint, which leaves some fields of metadata alone."""
    return replace(kind, status=True, status_keeps=frozenset(keeps))


def _workload(group: str, kind: str, plural: str, *short_names: str) -> Kind:
    return _with_status(_kind(group, kind, plural, *short_names, categories=("all",), generation=True))


def _scaled(kind: Kind) -> Kind:
    return replace(kind, scale=ScalePaths())


def _policy(kind: str, plural: str) -> Kind:
    policy = _kind(
        "admissionregistration.k8s.io",
        kind,
        plural,
        namespaced=False,
        categories=("api-extensions",),
        generation=True,
        unconditional_update=False,
    )
    return replace(policy, enforced=False)


NAMESPACE = _with_status(_kind("", "Namespace", "namespaces", "ns", namespaced=False))
CUSTOM_RESOURCE_DEFINITION = _with_status(
    _kind(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd",
        "crds",
        namespaced=False,
        categories=("api-extensions",),
        generation=True,
        unconditional_update=False,
    )
)
_EVENT = _kind("events.k8s.io", "Event", "events", "ev")
_NETWORKING = "networking.k8s.io"

BUILTIN_KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    _kind("", "ConfigMap", "configmaps", "cm"),
    _kind("", "Secret", "secrets"),
    _kind("", "ServiceAccount", "serviceaccounts", "sa"),
    _kind("", "Event", "events", "ev"),
    _with_status(_kind("", "Service", "services", "svc", categories=("all",))),
    replace(
        _kind("", "Endpoints", "endpoints", "ep"),
        deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
    _with_status(_kind("", "Pod", "pods", "po", categories=("all",), generation=True), "ownerReferences"),
    _with_status(_kind("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc")),
    _with_status(_kind("", "PersistentVolume", "persistentvolumes", "pv", namespaced=False)),
    _with_status(_kind("", "ResourceQuota", "resourcequotas", "quota")),
    _kind("", "LimitRange", "limitranges", "limits"),
    replace(_EVENT, shared_storage="events", view=EVENTS_VIEW),
    _kind("coordination.k8s.io", "Lease", "leases", unconditional_update=False),
    replace(
        _scaled(_workload("apps", "Deployment", "deployments", "deploy")),
        annotated_generation=True,
        status_keeps=frozenset({"labels"}),
    ),
    _scaled(_workload("apps", "ReplicaSet", "replicasets", "rs")),
    _scaled(_workload("apps", "StatefulSet", "statefulsets", "sts")),
    _workload("apps", "DaemonSet", "daemonsets", "ds"),
    _kind("apps", "ControllerRevision", "controllerrevisions"),
    _workload("batch", "Job", "jobs"),
    _workload("batch", "CronJob", "cronjobs", "cj"),
    _with_status(
        _kind(
            "autoscaling",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "hpa",
            version="v2",
            categories=("all",),
        )
    ),
    _with_status(
        _kind(
            "policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", generation=True, unconditional_update=False
        )
    ),
    _with_status(_kind(_NETWORKING, "Ingress", "ingresses", "ing", generation=True)),
    _kind(_NETWORKING, "IngressClass", "ingressclasses", namespaced=False, generation=True),
    _kind(_NETWORKING, "NetworkPolicy", "networkpolicies", "netpol", generation=True),
    _kind("discovery.k8s.io", "EndpointSlice", "endpointslices", generation=True),
    _kind("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", namespaced=False, generation=True),
    _kind("storage.k8s.io", "StorageClass", "storageclasses", "sc", namespaced=False),
    _kind(_RBAC, "Role", "roles"),
    _kind(_RBAC, "RoleBinding", "rolebindings"),
    _kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False),
    _kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _policy("MutatingAdmissionPolicy", "mutatingadmissionpolicies"),
    _policy("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings"),
    _policy("MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    replace(_policy("ValidatingAdmissionPolicy", "validatingadmissionpolicies"), status=True),
    _policy("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    _policy("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    CUSTOM_RESOURCE_DEFINITION,
)
