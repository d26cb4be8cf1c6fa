"""The kinds of supply chains as `ResourceType`, and how they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kardinal.objects import ResourceType

__all__ = [
    "BLUEPRINT_OF",
    "CLUSTER_CONFIG_TEMPLATE",
    "CLUSTER_DELIVERY",
    "CLUSTER_DEPLOYMENT_TEMPLATE",
    "CLUSTER_IMAGE_TEMPLATE",
    "CLUSTER_RUN_TEMPLATE",
    "CLUSTER_SOURCE_TEMPLATE",
    "CLUSTER_SUPPLY_CHAIN",
    "CLUSTER_TEMPLATE",
    "DELIVERABLE",
    "GROUP",
    "RUNNABLE",
    "TEMPLATES",
    "VERSION",
    "WORKLOAD",
]

GROUP: Final = "carto.run"
VERSION: Final = "v1alpha1"


def _cluster(kind: str, plural: str) -> ResourceType:
    return ResourceType(GROUP, VERSION, kind, plural, namespaced=False)


WORKLOAD: Final = ResourceType(GROUP, VERSION, "Workload", "workloads")
DELIVERABLE: Final = ResourceType(GROUP, VERSION, "Deliverable", "deliverables")
RUNNABLE: Final = ResourceType(GROUP, VERSION, "Runnable", "runnables")
CLUSTER_SUPPLY_CHAIN: Final = _cluster("ClusterSupplyChain", "clustersupplychains")
CLUSTER_DELIVERY: Final = _cluster("ClusterDelivery", "clusterdeliveries")
CLUSTER_SOURCE_TEMPLATE: Final = _cluster("ClusterSourceTemplate", "clustersourcetemplates")
CLUSTER_IMAGE_TEMPLATE: Final = _cluster("ClusterImageTemplate", "clusterimagetemplates")
CLUSTER_CONFIG_TEMPLATE: Final = _cluster("ClusterConfigTemplate", "clusterconfigtemplates")
CLUSTER_DEPLOYMENT_TEMPLATE: Final = _cluster("ClusterDeploymentTemplate", "clusterdeploymenttemplates")
CLUSTER_TEMPLATE: Final = _cluster("ClusterTemplate", "clustertemplates")
CLUSTER_RUN_TEMPLATE: Final = _cluster("ClusterRunTemplate", "clusterruntemplates")

TEMPLATES: Final[Mapping[str, ResourceType]] = {
    template.kind: template
    for template in (
        CLUSTER_SOURCE_TEMPLATE,
        CLUSTER_IMAGE_TEMPLATE,
        CLUSTER_CONFIG_TEMPLATE,
        CLUSTER_DEPLOYMENT_TEMPLATE,
        CLUSTER_TEMPLATE,
    )
}
"""The template kinds that blueprints name, by kind."""

BLUEPRINT_OF: Final[Mapping[str, ResourceType]] = {
    WORKLOAD.kind: CLUSTER_SUPPLY_CHAIN,
    DELIVERABLE.kind: CLUSTER_DELIVERY,
}
"""The kind of blueprint of each kind of owner."""
