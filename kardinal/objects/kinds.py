"""The kinds that kardinal reads or writes: built-in ones, those of the Graph engine, and its own.

They stand here and not beside their models because the engine imports no model, and a command that prints a list should
not pay for one: importing the models takes a third of its time.
"""

from __future__ import annotations

from typing import Literal

from kardinal.objects.resource_type import ResourceType

__all__ = [
    "BUNDLE",
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
    "METRIC_CHECK",
    "NAMESPACE",
    "PIPELINE",
    "POD",
    "POLICY_GATE",
    "PROMOTION_STEP",
    "REPLICA_SET",
    "SECRET",
    "SERVICE_ACCOUNT",
    "STATEFUL_SET",
    "SUBSCRIPTION",
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

BUNDLE = ResourceType("kardinal.io", "v1alpha1", "Bundle", "bundles")
PIPELINE = ResourceType("kardinal.io", "v1alpha1", "Pipeline", "pipelines")
POLICY_GATE = ResourceType("kardinal.io", "v1alpha1", "PolicyGate", "policygates")
PROMOTION_STEP = ResourceType("kardinal.io", "v1alpha1", "PromotionStep", "promotionsteps")
METRIC_CHECK = ResourceType("kardinal.io", "v1alpha1", "MetricCheck", "metricchecks")
SUBSCRIPTION = ResourceType("kardinal.io", "v1alpha1", "Subscription", "subscriptions")

GRAPH = ResourceType("experimental.kro.run", "v1alpha1", "Graph", "graphs")
GRAPH_REVISION = ResourceType("experimental.kro.run", "v1alpha1", "GraphRevision", "graphrevisions")

NodeKind = Literal["template", "ref", "watch"]
"""The body of a Graph node: an object to apply, one object to read, or a selection of objects to read."""

NodeState = Literal["Ready", "NotReady", "Pending", "Excluded", "Blocked", "Error", "Conflict", "SystemError"]
