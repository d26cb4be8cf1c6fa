"""One world per test: an API server with the CRDs, the programs that are asked for, and a clock that they share.

Nothing in a world is a stand-in: an API server answers over HTTPS, the local plane or a real one (`--target`), the
programs are the composition that runs in a cluster, each with an identity of its own, and repositories are bare Git
repositories. What is special is the clock, which stands still unless moved (beside a real server it does not, but for
tests with the mark `virtual_time`), and that everything is stopped in the end.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

import kardinal.objects
import kardinal.promotion.kinds
from kardinal.git import GitRunner
from kardinal.kube import Client, NotFound, load_connection
from kardinal.objects import EVENT, GRAPH, JsonObject, ResourceType
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.runtime import Manager
from kardinal_local.plane.audit import RequestLog
from tests.support import settle
from tests.support.clock import WorldClock
from tests.support.names import TEAM
from tests.support.real import RealServer
from tests.support.references import references_behind
from tests.support.server import ApiServer, PlaneServer
from tests.support.settle import REAL_SECONDS
from tests.support.target import Target

__all__ = ["World"]

_MOMENT = 0.05
"""Seconds of real time."""

Running = TypeVar("Running", bound="Program")

KINDS = {
    (resource.api_version, resource.kind): resource
    for resource in (*vars(kardinal.objects).values(), *vars(kardinal.promotion.kinds).values())
    if isinstance(resource, ResourceType)
}


class Program(Protocol):
    """A running composition of controllers."""

    @property
    def manager(self) -> Manager: ...

    @property
    def runner(self) -> GitRunner | None: ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class World:
    """An API server and what runs on it; see the fixture `world`."""

    client: Client

    def __init__(self, *, server: ApiServer, clock: WorldClock, directory: Path) -> None:
        self.server = server
        self.clock = clock
        self.directory = directory
        self.cleanup = AsyncExitStack()
        self._running: dict[Program, AsyncExitStack] = {}
        self._clients: list[Client] = []
        self._threads = settle.CountingExecutor()
        self._directories = itertools.count(1)
        self._caught_up: object = None

    @classmethod
    async def create(cls, server: ApiServer, *, clock: WorldClock, directory: Path) -> World:
        world = cls(server=server, clock=clock, directory=directory)
        asyncio.get_running_loop().set_default_executor(world._threads)
        world.client = await world.connect("admin")
        return world

    # What a person does with kubectl.

    async def apply(self, *objects: JsonObject) -> list[JsonObject]:
        """Create or change objects by server-side apply."""
        applied = []
        for obj in objects:
            resource = KINDS[obj["apiVersion"], obj["kind"]]
            applied.append(await self.client.apply(resource, obj, field_manager="test", force=True))
        return applied

    async def get(self, resource: ResourceType, name: str, namespace: str = TEAM) -> JsonObject:
        return await self.client.get(resource, name, namespace if resource.namespaced else None)

    async def find(self, resource: ResourceType, name: str, namespace: str = TEAM) -> JsonObject | None:
        """Return the object, or None when there is none."""
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def objects(
        self, resource: ResourceType, namespace: str | None = None, *, labels: str | None = None
    ) -> list[JsonObject]:
        return (await self.client.list(resource, namespace, labels=labels)).items

    async def delete(self, resource: ResourceType, name: str, namespace: str = TEAM) -> None:
        await self.client.delete(resource, name, namespace if resource.namespaced else None)

    async def events(self, reason: str | None = None) -> list[JsonObject]:
        """Return the Events of all namespaces, all or those of one reason."""
        return [event for event in await self.objects(EVENT) if reason in (None, event.get("reason"))]

    # Letting time pass.

    async def settle(self) -> None:
        """Return when nothing more will happen unless time passes or another client writes."""
        await settle.settle(self)

    async def until(
        self,
        condition: Callable[[], Any],
        *,
        within: timedelta = timedelta(hours=1),
        real_seconds: float = REAL_SECONDS,
    ) -> Any:
        """Live until `condition`, a function or a coroutine function, answers something true; returns it."""
        return await settle.run_until(self, condition, within=within, real_seconds=real_seconds)

    async def wait_for(
        self,
        resource: ResourceType,
        name: str,
        accepts: Callable[[JsonObject], bool],
        *,
        namespace: str = TEAM,
        within: timedelta = timedelta(hours=1),
    ) -> JsonObject:
        """Live until the object exists and `accepts` says yes; returns it."""
        looked = -1

        async def accepted() -> JsonObject | None:
            nonlocal looked
            if (writes := self.server.writes()) == looked:
                return None
            # Counted before: what is written while this looks is looked at the next time.
            looked = writes
            obj = await self.find(resource, name, namespace)
            return obj if obj is not None and accepts(obj) else None

        what = f"{resource.kind} {namespace}/{name}: {settle.source_of(accepts)}"
        found: JsonObject | None = await settle.run_until(self, accepted, within=within, what=what)
        assert found is not None
        return found

    async def live(self, duration: timedelta) -> None:
        """Let `duration` pass, with all that is due by then."""
        await self.settle()
        passed = asyncio.Event()
        self.clock.call_later(duration.total_seconds(), passed.set)
        await self.until(passed.is_set, within=duration)

    async def idle(self, duration: timedelta) -> None:
        """Let a time pass in which nothing should happen; on a real clock no more of it than a test has."""
        await self.live(self.clock.at_most(duration))

    # Running programs.

    async def run(
        self, build: Callable[[Client], Running], *, identity: str, needs: AsyncExitStack | None = None
    ) -> Running:
        """Start a program with the credentials of `identity`; it is stopped by `stop`, or with the world.

        What it `needs` is closed after it.
        """
        async with needs or AsyncExitStack() as stack:
            client = await self._connect(stack, identity)
            program = build(client)
            stack.push_async_callback(program.stop)
            await self._start(program)
            stack.callback(self._running.pop, program)
            self._running[program] = stack.pop_all()
        return program

    async def _start(self, program: Program) -> None:
        starting = asyncio.create_task(program.start())
        try:
            async with asyncio.timeout(REAL_SECONDS):
                while not starting.done():
                    # A program that was turned away waits on a clock that no other code moves before it runs.
                    if any(informer.backing_off for informer in program.manager.informers):
                        await self.clock.go_on(math.inf)
                    await asyncio.wait((starting,), timeout=_MOMENT)
                await starting
        finally:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)

    def new_directory(self, purpose: str) -> Path:
        """Return a path of this world's own, not yet made."""
        return self.directory / f"{purpose}-{next(self._directories)}"

    async def connect(self, identity: str) -> Client:
        """Return a client with the credentials of `identity`, closed with the world."""
        return await self._connect(self.cleanup, identity)

    async def stop(self, program: Program) -> None:
        """Stop a program and close its connection."""
        await self._running[program].aclose()

    async def close(self) -> None:
        for program in reversed(list(self._running)):
            await self.stop(program)
        await self.cleanup.aclose()

    async def _connect(self, stack: AsyncExitStack, identity: str) -> Client:
        connection = await load_connection(self.server.kubeconfig_for(identity))
        client = await stack.enter_async_context(Client(connection, user_agent=f"kardinal-test/{identity}"))
        self._clients.append(client)
        stack.callback(self._clients.remove, client)
        return client

    def user(self, identity: str) -> str:
        """Return the name of an identity in the log of requests."""
        return self.server.user(identity)

    @property
    def audit(self) -> RequestLog:
        """Return the requests that the server answered."""
        return self.server.audit

    # What `settle` asks.

    def pulse(self) -> int:
        return self.server.requests()

    def unrest(self) -> list[str]:
        if busy := self._busy() or references_behind():
            return busy
        moment = self.server.moment()
        if moment == self._caught_up:
            return []  # What was compared then is still so.
        behind = self.server.unrest()
        behind += [line for program in self._running for line in _informers_behind(program, self.server)]
        self._caught_up = None if behind else moment
        return behind

    def _busy(self) -> list[str]:
        return [
            *(f"{client.in_flight} requests under way" for client in self._clients if client.in_flight),
            *("a thread is at work" for _ in self._threads.pending),
            *(line for program in self._running for line in _activity(program)),
        ]

    async def describe(self) -> str:
        sections = [
            settle.table(f"the time is {self.clock.now():%a %H:%M:%S}, pending timers", self.clock.pending()),
            settle.table("unrest", self.unrest()),
        ]
        for resource in (BUNDLE, GRAPH, PROMOTION_STEP, POLICY_GATE):
            objects = await self.objects(resource)
            sections.append(settle.table(resource.plural, [_summary(obj) for obj in objects]))
        events = [f"{event.get('reason')}: {event.get('note')}" for event in await self.events()]
        return "\n".join([*sections, settle.table("last Events", events[-10:])])


def _activity(program: Program) -> Iterator[str]:
    name = type(program).__name__
    manager = program.manager
    if not manager.idle:
        yield from (f"{name}: {line}" for line in manager.activity() or ["is busy"])
    if not manager.recorder.idle:
        yield f"{name}: Events are being written"
    if program.runner is not None and program.runner.busy:
        yield f"{name}: Git is at work"


def _informers_behind(program: Program, server: ApiServer) -> Iterator[str]:
    for informer in program.manager.informers:
        if informer.backing_off:
            continue  # It waits for its timer, not for the server.
        for line in settle.difference(informer.revisions, server.served(informer)):
            yield f"{type(program).__name__}: the informer of {informer.resource.plural}: {line}"


def _summary(obj: JsonObject) -> str:
    status = {key: value for key, value in obj.get("status", {}).items() if key not in _LONG_FIELDS}
    return f"{obj['metadata'].get('namespace')}/{obj['metadata']['name']}: {status or 'no status'}"


_LONG_FIELDS = {"evidence", "environments", "outputs"}


@pytest.fixture(scope="session", autouse=True)
def real_server(
    request: pytest.FixtureRequest, target: Target, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealServer | None]:
    """Start this worker's real API server, if it has one.

    Started before the first test, whatever that is: what the server holds then is what it is put back to, and what
    other tests leave on it must not be taken for that. Nor would a test begin with processes that outlive it.
    """
    if target is not Target.ASSETS:
        yield None
        return
    server = RealServer(request.getfixturevalue("real_kubeconfig"), tmp_path_factory.mktemp("identities"))
    yield server
    server.close()


@pytest.fixture
def api_server(
    request: pytest.FixtureRequest, real_server: RealServer | None, clock: WorldClock
) -> Iterator[ApiServer]:
    """Return an API server with the CRDs and the namespaces of the team and of the policies, as new."""
    if real_server is None:
        yield PlaneServer(request.getfixturevalue("prepared_plane"), clock)
        return
    real_server.reset()
    yield real_server
    real_server.release()


@pytest.fixture
async def world(api_server: ApiServer, clock: WorldClock, tmp_path: Path) -> AsyncIterator[World]:
    """Return a world on such a server; its programs are started by the test."""
    world = await World.create(api_server, clock=clock, directory=tmp_path)
    yield world
    await world.close()
