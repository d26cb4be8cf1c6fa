"""A controller runtime for asyncio, on top of `kardinal.kube`. It knows no custom resource.

    manager = Manager(client, clock=clock, name="example")
    pods = manager.informer(POD)
    manager.controller("pods", reconciler, [Watch(pods)])
    await manager.run()
manager, controller, sources, predicates   the parts of a program, and the events that cause a reconcile
informer, reflector, store, dynamic        cached copies of collections
served_kinds, recent_answers               the kinds of the server, and answers that are remembered for a while
queue, rotation, retry, rate               the order of keys, and retries
consistency, own_writes                    waiting for own writes, and no reconcile for their events
status, recorder, finalizers, timers       writing status, Kubernetes Events and finalizers; waits
http, listener, connections, scrapes, metrics   probes, metrics and limits on connections
process, logging, descriptors, addresses   command line options, the log, file descriptors

A module is imported when one of its names is first used, so that a program that needs only a log does not load
controllers, metrics and a client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.runtime.controller import Controller, Reconciler, Result
    from kardinal.runtime.dynamic import DynamicInformers, Handle
    from kardinal.runtime.errors import GraceExceeded, RuntimeFailure, SyncTimeout, TerminalError, UndeclaredInformer
    from kardinal.runtime.informer import ChangeKind, Event, Informer, Outage
    from kardinal.runtime.key_memory import KeyMemory
    from kardinal.runtime.labels import BoundedLabels
    from kardinal.runtime.manager import Manager, Runnable
    from kardinal.runtime.recorder import EventRecorder, ResourceRef
    from kardinal.runtime.retry import Backoff
    from kardinal.runtime.sources import Channel, Mapper, Source, Watch, to_owner, to_self
    from kardinal.runtime.status import StatusWriter

__all__ = [
    "Backoff",
    "BoundedLabels",
    "ChangeKind",
    "Channel",
    "Controller",
    "DynamicInformers",
    "Event",
    "EventRecorder",
    "GraceExceeded",
    "Handle",
    "Informer",
    "KeyMemory",
    "Manager",
    "Mapper",
    "Outage",
    "Reconciler",
    "ResourceRef",
    "Result",
    "Runnable",
    "RuntimeFailure",
    "Source",
    "StatusWriter",
    "SyncTimeout",
    "TerminalError",
    "UndeclaredInformer",
    "Watch",
    "to_owner",
    "to_self",
]

_MODULES = {
    "controller": "Controller Reconciler Result",
    "dynamic": "DynamicInformers Handle",
    "errors": "GraceExceeded RuntimeFailure SyncTimeout TerminalError UndeclaredInformer",
    "informer": "ChangeKind Event Informer Outage",
    "labels": "BoundedLabels",
    "manager": "Manager Runnable",
    "key_memory": "KeyMemory",
    "recorder": "EventRecorder ResourceRef",
    "retry": "Backoff",
    "sources": "Channel Mapper Source Watch to_owner to_self",
    "status": "StatusWriter",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
