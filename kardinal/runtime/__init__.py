"""controller-runtime for asyncio, on top of `kardinal.kube`. It knows no custom resource."""

from kardinal.runtime.clock import Clock, SystemClock, Timer
from kardinal.runtime.controller import Controller, Reconciler, Result
from kardinal.runtime.errors import GraceExceeded, RuntimeFailure, SyncTimeout, TerminalError, UndeclaredInformer
from kardinal.runtime.informer import Change, Event, Informer
from kardinal.runtime.keys import Key, key_of
from kardinal.runtime.manager import Manager, Runnable
from kardinal.runtime.recorder import EventRecorder, ResourceRef
from kardinal.runtime.retry import Backoff
from kardinal.runtime.sources import Channel, Mapper, Source, Watch, to_owner, to_self
from kardinal.runtime.status import StatusWriter

__all__ = [
    "Backoff",
    "Change",
    "Channel",
    "Clock",
    "Controller",
    "Event",
    "EventRecorder",
    "GraceExceeded",
    "Informer",
    "Key",
    "Manager",
    "Mapper",
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
    "key_of",
    "to_owner",
    "to_self",
]
