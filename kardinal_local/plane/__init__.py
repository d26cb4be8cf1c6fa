"""A kubectl-compatible Kubernetes API server in one asyncio process with a SQLite file (local-plane.md).

What `kardinal local up` runs on, and what most tests run on. It is not a mock: the controllers reach it over HTTPS
exactly as they reach a cluster. It is not a cluster either: no pods run, one process, one writer.

    plane         start and stop: directory, listener, identities
    handlers      the answers to requests            control      what goes on without one
    wire          what requests and answers look like
    objects       what may be done to objects        security     who may do it
    apply         server-side apply                  patches      the other three
    builtin       the kinds that are always there
    kinds         what is known of a kind            tables       what `kubectl get` prints of it
    schemas       what a schema says of an object    storage      objects, revisions, the file
    simulator     what would run in a cluster; a client like any other

A room imports from those below it, never from one above or beside it; `directory` (whose it is), `documents`, `errors`,
`metadata`, `naming`, `audit` and `statuses` (the words of a refusal) are shared by all that need them. What is offered
here is imported when a name of it is first used: to stop a plane nobody has to import one.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal_local.plane.audit import LoggedRequest, LogSubscription, RequestLog
    from kardinal_local.plane.directory import holder
    from kardinal_local.plane.errors import DirectoryInUse, DirectoryUnusable, LocalPlaneError, PortUnusable
    from kardinal_local.plane.plane import LocalPlane
    from kardinal_local.plane.security import Authority

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

_MODULES = {
    "audit": "LoggedRequest LogSubscription RequestLog",
    "directory": "holder",
    "errors": "DirectoryInUse DirectoryUnusable LocalPlaneError PortUnusable",
    "plane": "LocalPlane",
    "security": "Authority",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
