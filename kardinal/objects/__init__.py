"""The vocabulary of Kubernetes objects that every room shares: plain JSON, kinds, references, conditions.

Imports nothing of ours and no pydantic, so that a room which only moves objects around stays small.
"""

from kardinal.objects.kinds import (
    CONFIG_MAP,
    CRON_JOB,
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    EVENT,
    GRAPH,
    GRAPH_REVISION,
    JOB,
    LEASE,
    NAMESPACE,
    POD,
    REPLICA_SET,
    SECRET,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
    NodeKind,
    NodeState,
)
from kardinal.objects.references import Key, Owner, controller_of, key_of, labels_of
from kardinal.objects.resource_type import JsonObject, ResourceType

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
