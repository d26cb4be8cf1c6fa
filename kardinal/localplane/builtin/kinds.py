"""The built-in kinds this server serves.

Those that kardinal itself reads and writes, and those that a rendered environment directory or `deploy/` may hold.
Nothing runs behind them: a Deployment is a record until somebody reports a status for it.
"""

from __future__ import annotations

from kardinal.localplane.builtin.events import EVENTS_VIEW
from kardinal.localplane.builtin.schemas import builtin_schema
from kardinal.localplane.kinds import Kind, View

__all__ = ["BUILTIN_KINDS", "CUSTOM_RESOURCE_DEFINITION", "NAMESPACE"]


def _kind(
    group: str,
    kind: str,
    plural: str,
    *,
    version: str = "v1",
    namespaced: bool = True,
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    status: bool = False,
    generation: bool = False,
    annotated_generation: bool = False,
    unconditional_update: bool = True,
    shared_storage: str = "",
    view: View | None = None,
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
        status=status,
        generation=generation,
        annotated_generation=annotated_generation,
        unconditional_update=unconditional_update,
        shared_storage=shared_storage,
        view=view,
        schema=builtin_schema(group, version, kind),
    )


def _workload(group: str, kind: str, plural: str, *short_names: str, version: str = "v1") -> Kind:
    return _kind(
        group,
        kind,
        plural,
        version=version,
        short_names=short_names,
        categories=("all",),
        status=True,
        generation=True,
        annotated_generation=kind == "Deployment",
    )


NAMESPACE = _kind("", "Namespace", "namespaces", namespaced=False, short_names=("ns",), status=True)
CUSTOM_RESOURCE_DEFINITION = _kind(
    "apiextensions.k8s.io",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    short_names=("crd", "crds"),
    categories=("api-extensions",),
    status=True,
    generation=True,
    unconditional_update=False,
)

_RBAC = "rbac.authorization.k8s.io"

BUILTIN_KINDS: tuple[Kind, ...] = (
    NAMESPACE,
    _kind("", "ConfigMap", "configmaps", short_names=("cm",)),
    _kind("", "Secret", "secrets"),
    _kind("", "ServiceAccount", "serviceaccounts", short_names=("sa",)),
    _kind("", "Event", "events", short_names=("ev",)),
    _kind("", "Service", "services", short_names=("svc",), categories=("all",), status=True),
    _kind("", "Pod", "pods", short_names=("po",), categories=("all",), status=True, generation=True),
    _kind("", "PersistentVolumeClaim", "persistentvolumeclaims", short_names=("pvc",), status=True),
    _kind("events.k8s.io", "Event", "events", short_names=("ev",), shared_storage="events", view=EVENTS_VIEW),
    _kind("coordination.k8s.io", "Lease", "leases", unconditional_update=False),
    _workload("apps", "Deployment", "deployments", "deploy"),
    _workload("apps", "ReplicaSet", "replicasets", "rs"),
    _workload("apps", "StatefulSet", "statefulsets", "sts"),
    _workload("apps", "DaemonSet", "daemonsets", "ds"),
    _workload("batch", "Job", "jobs"),
    _workload("batch", "CronJob", "cronjobs", "cj"),
    _workload("autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", version="v2"),
    _kind("policy", "PodDisruptionBudget", "poddisruptionbudgets", short_names=("pdb",), status=True, generation=True),
    _kind("networking.k8s.io", "Ingress", "ingresses", short_names=("ing",), status=True, generation=True),
    _kind("networking.k8s.io", "NetworkPolicy", "networkpolicies", short_names=("netpol",), generation=True),
    _kind(_RBAC, "Role", "roles"),
    _kind(_RBAC, "RoleBinding", "rolebindings"),
    _kind(_RBAC, "ClusterRole", "clusterroles", namespaced=False),
    _kind(_RBAC, "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    CUSTOM_RESOURCE_DEFINITION,
)
