"""One object of every built-in kind, as people write them: short, and leaving out what the server fills in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.local.contract.wire import Api

__all__ = ["MANIFESTS", "POD", "Manifest", "manifest"]

JsonObject = dict[str, Any]

POD: JsonObject = {
    "containers": [
        {
            "name": "web",
            "image": "registry.example.com/web:1.0.0",
            "ports": [{"containerPort": 8080, "name": "http"}],
            "env": [
                {"name": "MODE", "value": "production"},
                {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "web", "key": "token"}}},
            ],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
            "livenessProbe": {"tcpSocket": {"port": 8080}, "initialDelaySeconds": 5},
            "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": {"memory": "1.5Gi"}},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
        },
        {"name": "proxy", "image": "registry.example.com/proxy"},
    ],
    "initContainers": [{"name": "init", "image": "registry.example.com/init:latest", "command": ["true"]}],
    "serviceAccountName": "web",
    "volumes": [
        {"name": "config", "configMap": {"name": "web"}},
        {"name": "secret", "secret": {"secretName": "web"}},
        {"name": "scratch"},
    ],
}
_TEMPLATE: JsonObject = {"metadata": {"labels": {"app": "web"}}, "spec": POD}
_SELECTOR: JsonObject = {"matchLabels": {"app": "web"}}
_RULES: list[JsonObject] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]
_CLAIM: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1024Mi"}}}


@dataclass(frozen=True)
class Manifest:
    """Where an object goes, and what it holds beside its type and metadata."""

    plural: str
    kind: str
    group: str = ""
    content: JsonObject | None = None
    version: str = "v1"
    namespaced: bool = True

    def path(self, api: Api, name: str = "", **options: Any) -> str:
        namespace = "" if self.namespaced else None
        return api.path(self.plural, name, group=self.group, version=self.version, namespace=namespace, **options)

    def named(self, name: str, **content: Any) -> JsonObject:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        described = {"apiVersion": api_version, "kind": self.kind, "metadata": {"name": name}}
        return described | (self.content or {}) | content

    def placed(self, api: Api, name: str) -> JsonObject:
        """The object in the namespace of the test; an event is where the object is that it is about."""
        content: JsonObject = {"metadata": {"name": name} | ({"namespace": api.namespace} if self.namespaced else {})}
        if str(self) == "events":
            content["involvedObject"] = {"kind": "Bundle", "name": "a", "namespace": api.namespace}
        return self.named(name, **content)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def manifest(plural: str) -> Manifest:
    """The manifest of a resource."""
    return next(found for found in MANIFESTS if str(found) == plural)


MANIFESTS = (
    Manifest("configmaps", "ConfigMap", content={"data": {"a": "1"}, "binaryData": {"b": "AQ=="}, "immutable": False}),
    Manifest("secrets", "Secret", content={"stringData": {"a": "x"}, "data": {"b": "eA=="}}),
    Manifest("serviceaccounts", "ServiceAccount", content={"imagePullSecrets": [{"name": "registry"}]}),
    Manifest("namespaces", "Namespace", namespaced=False),
    Manifest(
        "events",
        "Event",
        content={"message": "done", "reason": "Done"},
    ),
    Manifest(
        "services",
        "Service",
        content={"spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}},
    ),
    Manifest(
        "endpoints", "Endpoints", content={"subsets": [{"addresses": [{"ip": "1.2.3.4"}], "ports": [{"port": 1}]}]}
    ),
    Manifest("pods", "Pod", content={"spec": POD}),
    Manifest("persistentvolumeclaims", "PersistentVolumeClaim", content={"spec": _CLAIM}),
    Manifest(
        "persistentvolumes",
        "PersistentVolume",
        content={
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "capacity": {"storage": "1Gi"},
                "hostPath": {"path": "/data"},
            }
        },
        namespaced=False,
    ),
    Manifest("resourcequotas", "ResourceQuota", content={"spec": {"hard": {"count/bundles.example.com": "1000m"}}}),
    Manifest(
        "limitranges",
        "LimitRange",
        content={"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"cpu": "100m"}}]}},
    ),
    Manifest(
        "events",
        "Event",
        "events.k8s.io",
        {
            "eventTime": "2026-01-02T03:04:05.123456Z",
            "reportingController": "example.com/c",
            "reportingInstance": "c-1",
            "action": "Promote",
            "reason": "Done",
            "note": "done",
            "type": "Normal",
            "regarding": {"kind": "Bundle", "name": "a", "namespace": "default"},
            "metadata": {"name": "a", "namespace": "default"},
        },
    ),
    Manifest("leases", "Lease", "coordination.k8s.io", {"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}),
    Manifest("deployments", "Deployment", "apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    Manifest("replicasets", "ReplicaSet", "apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    Manifest(
        "statefulsets",
        "StatefulSet",
        "apps",
        {
            "spec": {
                "selector": _SELECTOR,
                "serviceName": "web",
                "template": _TEMPLATE,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": _CLAIM}],
            }
        },
    ),
    Manifest("daemonsets", "DaemonSet", "apps", {"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}),
    Manifest("controllerrevisions", "ControllerRevision", "apps", {"data": {"a": 1}, "revision": 1}),
    Manifest("jobs", "Job", "batch", {"spec": {"template": {"spec": {**POD, "restartPolicy": "Never"}}}}),
    Manifest(
        "cronjobs",
        "CronJob",
        "batch",
        {
            "spec": {
                "schedule": "@daily",
                "jobTemplate": {"spec": {"template": {"spec": {**POD, "restartPolicy": "OnFailure"}}}},
            }
        },
    ),
    Manifest(
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        "autoscaling",
        {
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 3,
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}},
            }
        },
        version="v2",
    ),
    Manifest(
        "poddisruptionbudgets", "PodDisruptionBudget", "policy", {"spec": {"minAvailable": 1, "selector": _SELECTOR}}
    ),
    Manifest(
        "ingresses",
        "Ingress",
        "networking.k8s.io",
        {"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}},
    ),
    Manifest(
        "ingressclasses",
        "IngressClass",
        "networking.k8s.io",
        {"spec": {"controller": "example.com/ingress"}},
        namespaced=False,
    ),
    Manifest(
        "networkpolicies",
        "NetworkPolicy",
        "networking.k8s.io",
        {"spec": {"podSelector": {}, "egress": [{"ports": [{"port": 53}]}]}},
    ),
    Manifest(
        "endpointslices",
        "EndpointSlice",
        "discovery.k8s.io",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["1.2.3.4"]}], "ports": [{"port": 80}]},
    ),
    Manifest("priorityclasses", "PriorityClass", "scheduling.k8s.io", {"value": 1000}, namespaced=False),
    Manifest("storageclasses", "StorageClass", "storage.k8s.io", {"provisioner": "example.com/p"}, namespaced=False),
    Manifest("roles", "Role", "rbac.authorization.k8s.io", {"rules": _RULES}),
    Manifest(
        "rolebindings",
        "RoleBinding",
        "rbac.authorization.k8s.io",
        {"roleRef": {"kind": "Role", "name": "web"}, "subjects": [{"kind": "User", "name": "jane"}]},
    ),
    Manifest("clusterroles", "ClusterRole", "rbac.authorization.k8s.io", namespaced=False),
    Manifest(
        "clusterrolebindings",
        "ClusterRoleBinding",
        "rbac.authorization.k8s.io",
        {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "default"}],
        },
        namespaced=False,
    ),
)
