"""The vocabulary of Kubernetes objects that every room shares: plain JSON, kinds, references, conditions.

Imports nothing of ours and no pydantic, so that a room which only moves objects around stays small.
"""

from kardinal.objects.kinds import (
    BUNDLE,
    CONFIG_MAP,
    CUSTOM_RESOURCE_DEFINITION,
    DEPLOYMENT,
    EVENT,
    GRAPH,
    GRAPH_REVISION,
    LEASE,
    METRIC_CHECK,
    NAMESPACE,
    PIPELINE,
    POLICY_GATE,
    PROMOTION_STEP,
    SECRET,
    SERVICE_ACCOUNT,
    SUBSCRIPTION,
    NodeKind,
    NodeState,
)
from kardinal.objects.references import Key, Owner, controller_of, key_of, labels_of
from kardinal.objects.resource_type import JsonObject, ResourceType

__all__ = [
    "BUNDLE",
    "CONFIG_MAP",
    "CUSTOM_RESOURCE_DEFINITION",
    "DEPLOYMENT",
    "EVENT",
    "GRAPH",
    "GRAPH_REVISION",
    "LEASE",
    "METRIC_CHECK",
    "NAMESPACE",
    "PIPELINE",
    "POLICY_GATE",
    "PROMOTION_STEP",
    "SECRET",
    "SERVICE_ACCOUNT",
    "SUBSCRIPTION",
    "JsonObject",
    "Key",
    "NodeKind",
    "NodeState",
    "Owner",
    "ResourceType",
    "controller_of",
    "key_of",
    "labels_of",
]
