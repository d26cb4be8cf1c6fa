"""A client of the Kubernetes API, without knowledge of any custom resource of kardinal.

    async with Client(await load_connection(), user_agent="kardinal-controller") as client:
        config = await client.get(CONFIG_MAP, "settings", "default")
client, transport, connection   the verbs, the HTTP session below them, and the credentials
watch, objects                  the events of a watch, the pages of a list, the types of a patch
kubeconfig, contexts, credentials, plugins, in_cluster, embedded, tls   how a connection is configured
errors, backoff, bounds         the tree of errors, waits between retries, limits on answers
discovery, selectors, creation, writes   the served kinds, label selectors, names, a log of own writes
"""

from kardinal.kube.backoff import Backoff
from kardinal.kube.bounds import TENANT, Allowance, Bounds, Room
from kardinal.kube.client import Client
from kardinal.kube.connection import ClusterAccess, Connection
from kardinal.kube.creation import create_first_free
from kardinal.kube.discovery import Served, discover
from kardinal.kube.embedded import embedded_access
from kardinal.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    ConfigError,
    Conflict,
    ConnectionFailed,
    DeadlineExceeded,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    TooManyRequests,
    Unauthorized,
    UnsupportedMediaType,
)
from kardinal.kube.kubeconfig import load_connection
from kardinal.kube.objects import ObjectList, PatchType, WatchEvent
from kardinal.kube.writes import Write, recorded_writes

__all__ = [
    "TENANT",
    "Allowance",
    "AlreadyExists",
    "ApiError",
    "Backoff",
    "BadRequest",
    "Bounds",
    "Client",
    "ClusterAccess",
    "ConfigError",
    "Conflict",
    "Connection",
    "ConnectionFailed",
    "DeadlineExceeded",
    "Expired",
    "Forbidden",
    "Invalid",
    "KubeError",
    "NotFound",
    "ObjectList",
    "PatchType",
    "Room",
    "Served",
    "ServerError",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
    "WatchEvent",
    "Write",
    "create_first_free",
    "discover",
    "embedded_access",
    "load_connection",
    "recorded_writes",
]
