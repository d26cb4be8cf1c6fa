"""A kubectl-compatible Kubernetes API server in one asyncio process with a SQLite file (local-plane.md).

What `kardinal local up` runs on, and what most tests run on. It is not a mock: the controllers reach it over HTTPS
exactly as they reach a cluster. It is not a cluster either: no pods run, one process, one writer.

    plane          start and stop: directory, lock, listener, identities
    api            HTTP: authentication, routing, errors         exchange, routes, negotiation, bodies, statuses
    information    versions, discovery, OpenAPI                  discovery, openapi
    reading        get, list, watch                              lists, watches, selectors, rendering, columns
    writing        create, update, patch, delete                 objects, composition, deletion, admission, metadata
    validation     schema and rules of one kind                  schema, rules
    control        housekeeping                                  collector, namespaces, definitions, expiry
    store          objects, revisions, the file                  history
    kinds          what is known of a kind                       builtin, registry, eventviews, crds
    ssa, patches   server-side apply and the other three patches
    security       authority, tokens, kubeconfigs                audit, reviews
"""

from kardinal.localplane.audit import LoggedRequest, LogSubscription, RequestLog
from kardinal.localplane.errors import DirectoryInUse, DirectoryUnusable, LocalPlaneError, PortUnusable
from kardinal.localplane.plane import LocalPlane, holder
from kardinal.localplane.security import Authority

__all__ = [
    "Authority",
    "DirectoryInUse",
    "DirectoryUnusable",
    "LocalPlane",
    "LocalPlaneError",
    "LogSubscription",
    "LoggedRequest",
    "PortUnusable",
    "RequestLog",
    "holder",
]
