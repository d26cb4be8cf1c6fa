"""The built-in kinds that kardinal reads or writes."""

from __future__ import annotations

from kardinal.api.resource import ResourceType

__all__ = [
    "CONFIG_MAP",
    "CUSTOM_RESOURCE_DEFINITION",
    "DEPLOYMENT",
    "EVENT",
    "LEASE",
    "NAMESPACE",
    "SECRET",
    "SERVICE_ACCOUNT",
]

NAMESPACE = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
SECRET = ResourceType("", "v1", "Secret", "secrets")
CONFIG_MAP = ResourceType("", "v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNT = ResourceType("", "v1", "ServiceAccount", "serviceaccounts")
EVENT = ResourceType("events.k8s.io", "v1", "Event", "events")
LEASE = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
DEPLOYMENT = ResourceType("apps", "v1", "Deployment", "deployments")
CUSTOM_RESOURCE_DEFINITION = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
