"""A kubectl-compatible Kubernetes API server in one asyncio process with a SQLite file.

What `kardinal local up` runs on, and what most tests run on. It is not a mock: the controllers reach it over HTTPS
exactly as they reach a cluster. It is not a cluster either: no pods run, one process, one writer.

    plane         start and stop: directory, listener, identities
    handlers      handlers of requests               control      controllers
    wire          reading requests, writing responses
    objects       operations on objects              security     authentication, authorization
    apply         server-side apply                  patches      the other three
    builtin       the built-in kinds
    kinds         what is known of a kind            tables       what `kubectl get` prints of it
    schemas       validation by a schema             storage      objects, revisions, the file

A package imports from those below it, never from one above or beside it; the modules `audit`, `clock`, `directory`,
`documents`, `errors`, `metadata`, `naming` and `statuses` are shared by all that need them. Of the rest of kardinal,
`kardinal.cel` alone is imported. What is offered here is imported when a name of it is first used: `kardinal local
down` does not import a server.
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
