"""A kubectl-compatible Kubernetes API server in one asyncio process with a SQLite file (local-plane.md).

What `kardinal local up` runs on, and what most tests run on. It is not a mock: the controllers reach it over HTTPS
exactly as they reach a cluster. It is not a cluster either: no pods run, one process, one writer.

    plane         start and stop: directory, lock, listener, identities
    handlers      the answers to requests            control      what goes on without one
    wire          what requests and answers look like
    objects       what may be done to objects        security     who may do it
    apply         server-side apply                  patches      the other three
    builtin       the kinds that are always there
    kinds         what is known of a kind            tables       what `kubectl get` prints of it
    schemas       what a schema says of an object    storage      objects, revisions, the file
    simulator     what would run in a cluster; a client like any other

A room imports from those below it, never from one above or beside it; `documents`, `errors`, `audit` and `statuses`
(the words of a refusal) are shared by all that need them.
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
