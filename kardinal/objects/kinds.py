"""The built-in kinds that kardinal reads or writes, and those of the Graph engine."""

from __future__ import annotations

from typing import Literal

from kardinal.objects.resource_type import ResourceType

__all__ = [
    "CONFIG_MAP",
    "CRON_JOB",
    "CUSTOM_RESOURCE_DEFINITION",
    "DAEMON_SET",
    "DEPLOYMENT",
    "EVENT",
    "GRAPH",
    "GRAPH_REVISION",
    "JOB",
    "LEASE",
    "NAMESPACE",
    "POD",
    "REPLICA_SET",
    "SECRET",
    "SERVICE_ACCOUNT",
    "STATEFUL_SET",
    "NodeKind",
    "NodeState",
]

NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
SECRET = ResourceType("", "v1", "Secret", "secrets")
CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = ResourceType("", "v1", "ServiceAccount", "serviceaccounts")
EVENT = ResourceType("events.k8s.io", "v1", "Event", "events")
LEASE = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
POD = ResourceType("", "v1", "Pod", "pods")
DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments")
REPLICA_SET = ResourceType("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = ResourceType("apps", "v1", "StatefulSet", "statefulsets")
DAEMON_SET = ResourceType("apps", "v1", "DaemonSet", "daemonsets")
JOB = ResourceType("batch", "v1", "Job", "jobs")
CRON_JOB = ResourceType("batch", "v1", "CronJob", "cronjobs")
CUSTOM_RESOURCE_DEFINITION = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


GRAPH = ResourceType("experimental.kro.run", "v1alpha1", "Graph", "graphs")
GRAPH_REVISION = ResourceType("experimental.kro.run", "v1alpha1", "GraphRevision", "graphrevisions")

NodeKind = Literal["template", "patch", "ref", "watch", "def"]
"""The body of a Graph node: an object to apply, one object to read, a selection of objects, or a computed value."""

NodeState = Literal["Ready", "NotReady", "Pending", "Excluded", "Blocked", "Error", "Conflict", "SystemError"]
