"""The columns of the built-in kinds, in the order and under the names that the real server's printers give them.

Kinds without an entry show name and age. An age is a string here and a date in the tables of custom kinds, as on the
real server.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.tables import cells
from kardinal_local.plane.tables.columns import AGE, NAME, Cell, Column
from kardinal_local.plane.tables.pods import pod_gates, pod_ready, pod_restarts, pod_status

__all__ = ["builtin_columns"]


def builtin_columns(group: str, kind: str) -> tuple[Column, ...]:
    """The columns of a built-in kind in the order in which they are shown."""
    return _COLUMNS.get((group, kind), (NAME, _AGE))


def _column(name: str, cell: Cell, *, wide: bool = False, type_: str = "string") -> Column:
    return Column(name, type_, cell, priority=1 if wide else 0)


def _created(obj: JsonObject, _: datetime) -> Any:
    return obj["metadata"].get("creationTimestamp", "<unknown>")


def _marked_default(annotation: str) -> Cell:
    """The name, and whether it is the one that is taken when none is named."""

    def cell(obj: JsonObject, _: datetime) -> str:
        chosen = obj["metadata"].get("annotations", {}).get(annotation) == "true"
        return f"{obj['metadata']['name']} (default)" if chosen else str(obj["metadata"]["name"])

    return cell


def _replicas(name: str, *keys: str) -> Column:
    return _column(name, cells.number(*keys), type_="integer")


def _pods(*template: str, selector: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """The wide columns of what makes pods."""
    shown = (
        _column("Containers", cells.containers("name", *template), wide=True),
        _column("Images", cells.containers("image", *template), wide=True),
    )
    return (*shown, _column("Selector", cells.selector(*selector), wide=True)) if selector else shown


_AGE: Final = replace(AGE, type="string")
_CREATED: Final = (NAME, _column("Created At", _created, type_="date"))
_TEMPLATE: Final = ("spec", "template", "spec")
_SELECTOR: Final = ("spec", "selector")
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_NETWORKING: Final = "networking.k8s.io"

_EVENT: Final = (
    _column("Last Seen", cells.last_seen),
    _column("Type", cells.path("type", default="")),
    _column("Reason", cells.path("reason", default="")),
    _column("Object", cells.about),
    _column("Subobject", cells.part, wide=True),
    _column("Source", cells.source, wide=True),
    _column("Message", lambda obj, _: str(obj.get("message") or obj.get("note") or "").strip()),
    _column("First Seen", cells.first_seen, wide=True),
    _column("Count", cells.times, wide=True),
    replace(NAME, priority=1),
)
_BINDING: Final = (
    NAME,
    _column("Role", cells.reference("roleRef")),
    _AGE,
    _column("Users", cells.subjects("User"), wide=True),
    _column("Groups", cells.subjects("Group"), wide=True),
    _column("ServiceAccounts", cells.subjects("ServiceAccount"), wide=True),
)
_WEBHOOKS: Final = (NAME, _column("Webhooks", cells.count(("webhooks",)), type_="integer"), _AGE)
_BOUND_POLICY: Final = (
    NAME,
    _column("PolicyName", cells.path("spec", "policyName", default="")),
    _column("ParamRef", cells.param),
    _AGE,
)
_UNSET: Final = "<unset>"

_COLUMNS: Final[dict[tuple[str, str], tuple[Column, ...]]] = {
    ("", "Namespace"): (NAME, _column("Status", cells.path("status", "phase", default="")), _AGE),
    ("", "ConfigMap"): (NAME, _column("Data", cells.count(("data",), ("binaryData",))), _AGE),
    ("", "Secret"): (
        NAME,
        _column("Type", cells.path("type", default="")),
        _column("Data", cells.count(("data",))),
        _AGE,
    ),
    ("", "Service"): (
        NAME,
        _column("Type", cells.path("spec", "type")),
        _column("Cluster-IP", cells.path("spec", "clusterIP")),
        _column("External-IP", cells.external_address),
        _column("Port(s)", cells.ports),
        _AGE,
        _column("Selector", cells.labels("spec", "selector"), wide=True),
    ),
    ("", "Endpoints"): (NAME, _column("Endpoints", cells.endpoints), _AGE),
    ("", "Pod"): (
        NAME,
        _column("Ready", pod_ready),
        _column("Status", pod_status),
        _column("Restarts", pod_restarts),
        _AGE,
        _column("IP", cells.path("status", "podIP"), wide=True),
        _column("Node", cells.path("spec", "nodeName"), wide=True),
        _column("Nominated Node", cells.path("status", "nominatedNodeName"), wide=True),
        _column("Readiness Gates", pod_gates, wide=True),
    ),
    ("", "PersistentVolumeClaim"): (
        NAME,
        _column("Status", cells.phase),
        _column("Volume", cells.path("spec", "volumeName", default="")),
        _column("Capacity", cells.path("status", "capacity", "storage", default="")),
        _column("Access Modes", cells.modes("status", "accessModes")),
        _column("StorageClass", cells.path("spec", "storageClassName", default="")),
        _column("VolumeAttributesClass", cells.path("spec", "volumeAttributesClassName", default=_UNSET)),
        _AGE,
        _column("VolumeMode", cells.path("spec", "volumeMode", default=_UNSET), wide=True),
    ),
    ("", "PersistentVolume"): (
        NAME,
        _column("Capacity", cells.path("spec", "capacity", "storage", default="0")),
        _column("Access Modes", cells.modes("spec", "accessModes")),
        _column("Reclaim Policy", cells.path("spec", "persistentVolumeReclaimPolicy", default="")),
        _column("Status", cells.phase),
        _column("Claim", cells.claim),
        _column("StorageClass", cells.path("spec", "storageClassName", default="")),
        _column("VolumeAttributesClass", cells.path("spec", "volumeAttributesClassName", default=_UNSET)),
        _column("Reason", cells.path("status", "reason", default="")),
        _AGE,
        _column("VolumeMode", cells.path("spec", "volumeMode", default=_UNSET), wide=True),
    ),
    ("", "ResourceQuota"): (
        NAME,
        _column("Request", cells.quotas(limits=False)),
        _column("Limit", cells.quotas(limits=True)),
        _AGE,
    ),
    ("", "LimitRange"): _CREATED,
    ("", "Event"): _EVENT,
    ("events.k8s.io", "Event"): _EVENT,
    ("coordination.k8s.io", "Lease"): (NAME, _column("Holder", cells.path("spec", "holderIdentity", default="")), _AGE),
    ("apps", "Deployment"): (
        NAME,
        _column("Ready", cells.ready),
        _column("Up-to-date", cells.number("status", "updatedReplicas")),
        _column("Available", cells.number("status", "availableReplicas")),
        _AGE,
        *_pods(*_TEMPLATE, selector=_SELECTOR),
    ),
    ("apps", "ReplicaSet"): (
        NAME,
        _replicas("Desired", "spec", "replicas"),
        _replicas("Current", "status", "replicas"),
        _replicas("Ready", "status", "readyReplicas"),
        _AGE,
        *_pods(*_TEMPLATE, selector=_SELECTOR),
    ),
    ("apps", "StatefulSet"): (NAME, _column("Ready", cells.ready), _AGE, *_pods(*_TEMPLATE)),
    ("apps", "DaemonSet"): (
        NAME,
        _replicas("Desired", "status", "desiredNumberScheduled"),
        _replicas("Current", "status", "currentNumberScheduled"),
        _replicas("Ready", "status", "numberReady"),
        _replicas("Up-to-date", "status", "updatedNumberScheduled"),
        _replicas("Available", "status", "numberAvailable"),
        _column("Node Selector", cells.labels(*_TEMPLATE, "nodeSelector")),
        _AGE,
        *_pods(*_TEMPLATE, selector=_SELECTOR),
    ),
    ("apps", "ControllerRevision"): (
        NAME,
        _column("Controller", cells.controller),
        _column("Revision", cells.number("revision")),
        _AGE,
    ),
    ("batch", "Job"): (
        NAME,
        _column("Status", cells.job_status),
        _column("Completions", cells.completions),
        _column("Duration", cells.duration),
        _AGE,
        *_pods(*_TEMPLATE, selector=_SELECTOR),
    ),
    ("batch", "CronJob"): (
        NAME,
        _column("Schedule", cells.path("spec", "schedule", default="")),
        _column("Timezone", cells.path("spec", "timeZone")),
        _column("Suspend", cells.yes_or_no("spec", "suspend"), type_="boolean"),
        _column("Active", cells.count(("status", "active")), type_="integer"),
        _column("Last Schedule", cells.last_scheduled),
        _AGE,
        *_pods("spec", "jobTemplate", *_TEMPLATE, selector=("spec", "jobTemplate", *_SELECTOR)),
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): (
        NAME,
        _column("Reference", cells.reference("spec", "scaleTargetRef")),
        _column("Targets", cells.metrics),
        _column("MinPods", lambda obj, _: str(obj["spec"].get("minReplicas", _UNSET))),
        _column("MaxPods", cells.number("spec", "maxReplicas")),
        _column("Replicas", cells.number("status", "currentReplicas")),
        _AGE,
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        _column("Min Available", lambda obj, _: str(obj["spec"].get("minAvailable", "N/A"))),
        _column("Max Unavailable", lambda obj, _: str(obj["spec"].get("maxUnavailable", "N/A"))),
        _replicas("Allowed Disruptions", "status", "disruptionsAllowed"),
        _AGE,
    ),
    (_NETWORKING, "Ingress"): (
        NAME,
        _column("Class", cells.path("spec", "ingressClassName")),
        _column("Hosts", cells.hosts),
        _column("Address", cells.balancer),
        _column("Ports", lambda obj, _: "80, 443" if obj["spec"].get("tls") else "80"),
        _AGE,
    ),
    (_NETWORKING, "IngressClass"): (
        replace(NAME, cell=_marked_default("ingressclass.kubernetes.io/is-default-class")),
        _column("Controller", cells.path("spec", "controller", default="")),
        _column("Parameters", cells.reference("spec", "parameters")),
        _AGE,
    ),
    (_NETWORKING, "NetworkPolicy"): (NAME, _column("Pod-Selector", cells.selector("spec", "podSelector")), _AGE),
    ("discovery.k8s.io", "EndpointSlice"): (
        NAME,
        _column("AddressType", cells.path("addressType", default="")),
        _column("Ports", cells.slice_ports),
        _column("Endpoints", cells.slice_addresses),
        _AGE,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        NAME,
        _replicas("Value", "value"),
        _column("Global-Default", lambda obj, _: bool(obj.get("globalDefault")), type_="boolean"),
        _AGE,
        _column("PreemptionPolicy", cells.path("preemptionPolicy", default="")),
    ),
    ("storage.k8s.io", "StorageClass"): (
        replace(NAME, cell=_marked_default("storageclass.kubernetes.io/is-default-class")),
        _column("Provisioner", cells.path("provisioner", default="")),
        _column("ReclaimPolicy", cells.path("reclaimPolicy")),
        _column("VolumeBindingMode", cells.path("volumeBindingMode")),
        _column("AllowVolumeExpansion", lambda obj, _: bool(obj.get("allowVolumeExpansion"))),
        _AGE,
    ),
    (_RBAC, "Role"): _CREATED,
    (_RBAC, "ClusterRole"): _CREATED,
    (_RBAC, "RoleBinding"): _BINDING,
    (_RBAC, "ClusterRoleBinding"): _BINDING,
    (_ADMISSION, "MutatingAdmissionPolicy"): (
        NAME,
        _column("Mutations", cells.count(("spec", "mutations")), type_="integer"),
        _column("ParamKind", cells.param),
        _AGE,
    ),
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _BOUND_POLICY,
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): (
        NAME,
        _column("Validations", cells.count(("spec", "validations")), type_="integer"),
        _column("ParamKind", cells.param),
        _AGE,
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _BOUND_POLICY,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _CREATED,
}
