"""The engine on an API server that fails, and ended after each of its writes: another one finishes, nothing twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from kardinal.promotion.kinds import POLICY_GATE
from tests.graph.cluster import config
from tests.graph.interruptions import cut_after, refuse
from tests.graph.program import IDENTITY, GraphEngine, existing, graph, made_by_graphs, nodes_of, set_data, states, text
from tests.support.names import TEAM
from tests.support.world import World


class Creations:
    """How often the engine has created each object, by its resource and name."""

    def __init__(self, world: World) -> None:
        self.counts: Counter[str] = Counter()
        self._user = world.user(IDENTITY)
        world.audit.subscribe(self._note)

    def _note(self, request: Any) -> None:
        if request.user == self._user and request.verb == "patch" and request.code == 201:
            self.counts[f"{request.resource}/{request.name}"] += 1


@pytest.mark.case("A87")
async def test_object_that_the_server_fails_for_is_made_once_when_it_works_again(world: World) -> None:
    failing = True

    def build(client: Client) -> GraphEngine:
        refuse(client, lambda method, path: failing and method == "PATCH" and path.endswith("/configmaps/a"))
        return GraphEngine(client, clock=world.clock)

    await world.run(build, identity=IDENTITY)
    creations = Creations(world)
    await world.apply(graph(config("a"), config("b", {"x": "${a.metadata.name}"}), config("c")))
    assert await states(world) == {"a": "SystemError", "b": "Blocked", "c": "Ready"}
    assert (await nodes_of(world))["a"]["reason"] == "ServerError"
    await world.idle(timedelta(seconds=30))
    assert await states(world) == {"a": "SystemError", "b": "Blocked", "c": "Ready"}
    failing = False

    async def is_ready() -> bool:
        found = (await world.get(GRAPH, "g"))["status"]["nodes"]
        return all(node["state"] == "Ready" for node in found)

    await world.until(is_ready)
    assert creations.counts == {f"configmaps/{name}": 1 for name in ("a", "b", "c")}


def nodes(name: str, *items: str, last: bool) -> list[JsonObject]:
    """Return nodes of every kind; the last one goes, and the list changes."""
    template = {"apiVersion": POLICY_GATE.api_version, "kind": POLICY_GATE.kind, "metadata": {"name": f"{name}-gate"}}
    told = {"spec": {"expression": "true"}, "status": {"reason": "${a.data.x}"}}
    found = [
        {"id": "theirs", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}},
        config("a", {"x": "${theirs.data.x}"}, name=f"{name}-a"),
        {"id": "gate", "template": template | told},
        config("items", {"uid": "${a.metadata.uid}"}, name=f"{name}-${{item}}", forEach=f"{list(items)}"),
        config("b", {"n": "${string(size(items))}"}, name=f"{name}-b", dependsOn=["gate"]),
    ]
    return [*found, config("c", {"x": "${b.metadata.name}"}, name=f"{name}-c")] if last else found


@dataclass(frozen=True)
class Act:
    """One thing that happens to a Graph, and the objects that there are once all has come to rest."""

    happen: Callable[[], Awaitable[Any]]
    objects: frozenset[str]


def course(world: World, name: str) -> list[Act]:
    """Return the life of a Graph, from its creation to its deletion."""

    def objects(*ends: str) -> frozenset[str]:
        return frozenset(f"{name}-{end}" for end in ends)

    before = graph(*nodes(name, "one", "two", last=True), name=name)
    after = graph(*nodes(name, "two", "three", last=False), name=name)
    return [
        Act(lambda: world.apply(before), objects("a", "one", "two", "b", "c")),
        Act(lambda: world.apply(after), objects("a", "two", "three", "b")),
        Act(lambda: set_data(world, "theirs", x=name), objects("a", "two", "three", "b")),
        Act(lambda: world.delete(GRAPH, name), objects()),
    ]


async def start(world: World, writes: int | None) -> tuple[GraphEngine, asyncio.Event]:
    """Start an engine that ends after so many writes, and return it with what says that it has."""
    ended = asyncio.Event()

    def build(client: Client) -> GraphEngine:
        nonlocal ended
        if writes is not None:
            ended = cut_after(client, writes)
        return GraphEngine(client, clock=world.clock)

    return await world.run(build, identity=IDENTITY), ended


async def live(world: World, name: str, *, writes: int) -> bool:
    """Live the life of a Graph with an engine that ends after so many writes; return whether there were as many."""
    engine, ended = await start(world, writes)
    has_ended = False
    for act in course(world, name):
        await act.happen()
        await world.settle()
        if ended.is_set():
            has_ended = True
            await world.stop(engine)
            engine, ended = await start(world, None)
            await world.settle()
        assert await made_by_graphs(world) == act.objects, writes
        if act.objects:
            assert set((await states(world, name)).values()) == {"Ready"}, writes
            assert await text(world, f"{name}-a") == await text(world, "theirs")
    await world.stop(engine)
    return has_ended


@pytest.mark.timeout(300)
async def test_engine_that_ends_after_any_write_leaves_nothing_undone_or_twice(world: World) -> None:
    await world.apply(existing("theirs", {"x": "1"}))
    creations = Creations(world)
    writes = 0
    more = True
    while more:
        writes += 1
        more = await live(world, f"g{writes}", writes=writes)
    assert writes > 20
    assert await world.objects(POLICY_GATE, TEAM) == []
    assert (await world.get(CONFIG_MAP, "theirs"))["data"] == {"x": f"g{writes}"}
    assert {name: count for name, count in creations.counts.items() if count > 1} == {}
