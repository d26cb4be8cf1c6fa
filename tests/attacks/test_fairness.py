"""Attacks on the time, the Events and the memory that others need: one namespace does very much, another a little."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import aiohttp
import pytest

from kardinal.objects import EVENT, NAMESPACE, JsonObject, Key
from kardinal.promotion.api import Bundle, names
from kardinal.promotion.kinds import BUNDLE
from kardinal.runtime import Channel, Manager, ResourceRef, Result, labels, recorder
from kardinal_controller.program import ControlPlane
from kardinal_local.plane.audit import LoggedRequest
from tests.support.names import DEV, TEAM, of_run
from tests.support.objects import bundle, gate, namespace, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

BUNDLES = f"{BUNDLE.plural}.{BUNDLE.group}"
SERIES = "kardinal_bundles_created_total{"
LOUD = of_run("a-loud-team")
"""Comes before the other namespaces in every list."""


def sent_by(source: str, name: str, *, namespace: str) -> JsonObject:
    """Return a Bundle that says who made it."""
    made = bundle(name, namespace=namespace)
    made["metadata"]["annotations"] = {names.ANNOTATION_SOURCE: source}
    return made


async def create(world: World, *objects: JsonObject) -> None:
    await asyncio.gather(*(world.client.create(BUNDLE, obj) for obj in objects))


async def test_a_backlog_of_bundles_does_not_come_first(world: World) -> None:
    """A controller that starts finds 50 Bundles of one namespace before the one of another."""
    await world.client.create(NAMESPACE, namespace(LOUD))
    loud = [bundle(f"b{number}", pipeline=f"p{number}", namespace=LOUD) for number in range(50)]
    await create(world, *loud, bundle("quiet"))
    order: list[str] = []

    def note(request: LoggedRequest) -> None:
        if (request.resource, request.verb, request.subresource) == (BUNDLES, "patch", "status"):
            order.append(request.namespace)

    world.audit.subscribe(note)
    await start_controller(world)
    await world.until(lambda: TEAM in order)
    assert order.index(TEAM) < 20


async def test_runs_that_wait_do_not_hold_every_worker(world: World) -> None:
    """A namespace has twice as many keys as there are workers, and each run of them waits for something slow."""
    released = asyncio.Event()
    seen: list[Key] = []

    class Slow:
        async def reconcile(self, key: Key) -> Result:
            seen.append(key)
            if key.namespace == LOUD:
                await released.wait()
            return Result()

    class Program:
        runner = None

        def __init__(self, manager: Manager) -> None:
            self.manager = manager
            self.start = manager.start
            self.stop = manager.stop

    channel = Channel()

    def build(client: Any) -> Program:
        manager = Manager(client, clock=world.clock, name="slow")
        manager.controller("slow", Slow(), [channel], concurrency=16)
        return Program(manager)

    await world.run(build, identity="controller")
    for number in range(32):
        channel.push(Key(LOUD, str(number)))
    for _ in range(100):
        await asyncio.sleep(0)
    quiet = Key(TEAM, "quiet")
    channel.push(quiet)
    for _ in range(100):
        await asyncio.sleep(0)
    released.set()
    assert quiet in seen
    assert len(seen) < 17


async def test_a_storm_of_events_leaves_room_for_those_of_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "MAX_PENDING_OF_NAMESPACE", 50)
    await world.client.create(NAMESPACE, namespace(LOUD))
    controller = await start_controller(world)
    events = controller.manager.recorder
    for number in range(400):
        about = ResourceRef(BUNDLE.api_version, "Bundle", LOUD, f"b{number}")
        events.event(about, type="Warning", reason="Storm", note="again")
    events.event(ResourceRef(BUNDLE.api_version, "Bundle", TEAM, "quiet"), reason="Quiet", note="once")
    await world.settle()
    assert len(await world.events("Quiet")) == 1
    assert len(await world.events("Storm")) <= 100


async def test_events_of_many_objects_have_a_rate(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of an object is forgotten once 4,096 others were told of."""
    monkeypatch.setattr(recorder, "NAMESPACE_BURST", 100)
    await world.client.create(NAMESPACE, namespace(LOUD))
    controller = await start_controller(world)
    events = controller.manager.recorder
    for number in range(200):
        events.event(ResourceRef(BUNDLE.api_version, "Bundle", LOUD, f"b{number}"), reason="Storm", note="n")
        if number % 20 == 0:
            await world.settle()
    await world.settle()
    assert len(await world.objects(EVENT, LOUD)) <= 120


async def test_names_that_a_team_chooses_do_not_become_any_number_of_time_series(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "MAX_OF_NAMESPACE", 10)
    controller = await start_controller(world)
    await world.client.create(NAMESPACE, namespace(LOUD))
    sources = [*(f"source-{number}" for number in range(29)), "x" * 100_000]
    await create(world, *(sent_by(source, f"b{number}", namespace=LOUD) for number, source in enumerate(sources)))
    await create(world, sent_by("ours", "quiet", namespace=TEAM))
    await world.settle()
    async with aiohttp.ClientSession() as session, session.get(f"{controller.metrics_url}/metrics") as answer:
        lines = [line for line in (await answer.text()).splitlines() if line.startswith(SERIES)]
    assert len(lines) < 20
    assert max(map(len, lines)) < 1_000
    assert any('source="ours"' in line for line in lines)
    assert sum(float(line.split()[-1]) for line in lines) == 31


async def test_a_run_does_not_read_every_bundle_of_its_pipeline(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles that only wait are looked at as they are; models are made of those that a decision depends on."""
    models = 0
    original = Bundle.model_validate

    def counted(*arguments: Any, **options: Any) -> Bundle:
        nonlocal models
        models += 1
        return original(*arguments, **options)

    await create(world, *(bundle(f"b{each}") for each in range(30)))
    controller = await start_controller(world)
    monkeypatch.setattr(Bundle, "model_validate", counted)
    await world.settle()
    await world.apply(pipeline("file:///nowhere", environments=[DEV], historyLimit=100))
    await world.settle()
    phases = Counter(obj["status"]["phase"] for obj in await world.objects(BUNDLE))
    assert phases == {"Promoting": 1, "Superseded": 29}
    assert models < 6 * runs_of_bundles(controller)


async def test_the_gate_of_a_team_wakes_no_bundle_of_another(world: World) -> None:
    controller = await start_controller(world)
    await world.apply(namespace(LOUD))
    await world.apply(*(bundle(f"b{each}", pipeline="missing") for each in range(10)))
    await world.settle()
    before = runs_of_bundles(controller)
    for expression in ("true", "false", "1 == 1"):
        await world.apply(gate("mine", expression, namespace=LOUD))
        await world.settle()
    assert runs_of_bundles(controller) == before
    await world.apply(gate("ours", "true"))
    await world.settle()
    assert runs_of_bundles(controller) >= before + 10


def runs_of_bundles(controller: ControlPlane) -> float:
    """Return how often the reconciler of Bundles has run."""
    labels = [{"controller": "bundle", "result": result} for result in ("success", "error", "requeue_after")]
    registry = controller.manager.metrics
    return sum(registry.get_sample_value("controller_runtime_reconcile_total", each) or 0 for each in labels)
