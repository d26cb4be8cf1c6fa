"""controller-runtime for asyncio, on top of `kardinal.kube`. It knows no custom resource.

A module is imported when a name of its is first used: a program that needs a clock or a log does not load controllers,
metrics and a client.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kardinal.runtime.clock import Clock, SystemClock, Timer
    from kardinal.runtime.controller import Controller, Reconciler, Result
    from kardinal.runtime.dynamic import DynamicInformers, Handle
    from kardinal.runtime.errors import GraceExceeded, RuntimeFailure, SyncTimeout, TerminalError, UndeclaredInformer
    from kardinal.runtime.informer import Change, Event, Informer, Outage
    from kardinal.runtime.labels import BoundedLabels
    from kardinal.runtime.manager import Manager, Runnable
    from kardinal.runtime.recorder import EventRecorder, ResourceRef
    from kardinal.runtime.retry import Backoff
    from kardinal.runtime.sources import Channel, Mapper, Source, Watch, to_owner, to_self
    from kardinal.runtime.status import StatusWriter

__all__ = [
    "Backoff",
    "BoundedLabels",
    "Change",
    "Channel",
    "Clock",
    "Controller",
    "DynamicInformers",
    "Event",
    "EventRecorder",
    "GraceExceeded",
    "Handle",
    "Informer",
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
    "SystemClock",
    "TerminalError",
    "Timer",
    "UndeclaredInformer",
    "Watch",
    "to_owner",
    "to_self",
]

_MODULES = {
    "clock": "Clock SystemClock Timer",
    "controller": "Controller Reconciler Result",
    "dynamic": "DynamicInformers Handle",
    "errors": "GraceExceeded RuntimeFailure SyncTimeout TerminalError UndeclaredInformer",
    "informer": "Change Event Informer Outage",
    "labels": "BoundedLabels",
    "manager": "Manager Runnable",
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
