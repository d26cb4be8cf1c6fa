"""Talking to an API server: configuration, transport, typed errors, verbs and watch. It knows no kind of ours."""

from kardinal.kube.backoff import Backoff
from kardinal.kube.bounds import TENANT, Allowance, Bounds, Room
from kardinal.kube.client import Client
from kardinal.kube.connection import Access, Connection
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
    "Access",
    "Allowance",
    "AlreadyExists",
    "ApiError",
    "Backoff",
    "BadRequest",
    "Bounds",
    "Client",
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
