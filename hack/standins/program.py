"""A stand-in as a process: one kind, one reconciler, the rights of its own account.

It ends on SIGTERM, and when its standard input is closed, so that none outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import click

from hack.standins.kinds import KINDS
from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection
from kardinal.objects import JsonObject, Key, ResourceType
from kardinal.objects.conditions import Truth, set_condition
from kardinal.runtime.controller import Result
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import configure
from kardinal.runtime.manager import Manager
from kardinal.runtime.sources import Watch
from kardinal.runtime.status import StatusWriter

__all__ = ["POLL", "StandIn", "options", "run_standin", "with_condition"]

POLL = timedelta(milliseconds=250)
"""The time between two looks at what has no watch: a Git repository, the base of an image."""


class StandIn(Protocol):
    """One stand-in: from an object to its status."""

    async def status_of(self, obj: JsonObject) -> tuple[JsonObject, timedelta | None]:
        """Return the status of an object, and the time until it is looked at again."""
        ...


class _Reconciler:
    def __init__(self, kind: ResourceType, informer: Informer, standin: StandIn, status: StatusWriter) -> None:
        self._kind = kind
        self._informer = informer
        self._standin = standin
        self._status = status

    async def reconcile(self, key: Key) -> Result:
        found = self._informer.get(key.namespace, key.name)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return Result()
        status, again = await self._standin.status_of(found)
        await self._status.write(self._kind, found, status)
        return Result(requeue_after=again)


def with_condition(obj: JsonObject, type_: str, truth: Truth, reason: str, message: str = "") -> JsonObject:
    """Return the status of an object with a condition of its present generation."""
    status: JsonObject = obj.get("status") or {}
    conditions = set_condition(
        status.get("conditions") or [],
        type_,
        truth,
        reason=reason,
        message=message,
        now=datetime.now(UTC).replace(microsecond=0),
    )
    return {**status, "observedGeneration": obj["metadata"]["generation"], "conditions": conditions}


async def run_standin(name: str, kubeconfig: Path, namespace: str, start: Callable[[], Awaitable[StandIn]]) -> None:
    """Run the stand-in of this name until its standard input is closed."""
    configure(level="warning")
    kind = KINDS[name]
    async with Client(await load_connection(kubeconfig), user_agent=f"standin-{name}") as client:
        manager = Manager(client, clock=SystemClock(), name=f"standin-{name}")
        informer = manager.informer(kind, namespace=namespace)
        reconciler = _Reconciler(kind, informer, await start(), manager.status)
        manager.controller(name, reconciler, [Watch(informer)])
        stopped = asyncio.Event()
        asyncio.get_running_loop().add_reader(sys.stdin, _look_for_end, stopped)
        await manager.run(stopped)


def _look_for_end(stopped: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1):
        stopped.set()
        asyncio.get_running_loop().remove_reader(sys.stdin)


def options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all stand-ins have."""
    for decorate in (
        click.option("--namespace", required=True, help="The namespace whose objects it looks at."),
        click.option("--kubeconfig", required=True, type=click.Path(path_type=Path), help="The one of its account."),
    ):
        function = decorate(function)
    return function
