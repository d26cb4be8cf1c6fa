"""The owners that are registered with the engine decide which Graphs are walked, with which kinds and whose rights."""

from __future__ import annotations

from typing import Any

from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from tests.graph.program import IDENTITY, GraphEngine, TrustedGraphs, condition, graph, states
from tests.support.names import TEAM
from tests.support.objects import bundle
from tests.support.world import World

MAP: JsonObject = {
    "id": "settings",
    "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "b"}},
}


async def start_engine_of(world: World, *kinds: Any) -> None:
    """Start the engine for the Graphs of Bundles alone, whose objects it writes as the administrator."""
    administrator = world.client

    def build(client: Any) -> GraphEngine:
        owned = TrustedGraphs(administrator, BUNDLE, kinds=kinds)
        return GraphEngine(client, clock=world.clock, owners=[owned])

    await world.run(build, identity=IDENTITY)


async def test_graph_of_no_registered_owner_is_refused_with_the_kinds_that_are(world: World) -> None:
    await start_engine_of(world, CONFIG_MAP)
    await world.apply(graph(MAP))
    status, reason, message = await condition(world, "Accepted")
    assert (status, reason) == ("False", "NotAdmitted")
    assert "only the Graphs of Bundles are walked in this version: create a Bundle, which gets one" in message


async def test_kind_that_is_not_of_the_owner_of_its_graph_needs_an_account(world: World) -> None:
    await start_engine_of(world, POLICY_GATE)
    [owner] = await world.apply(bundle("app-1"))
    await world.apply(graph(MAP, owner=owner))
    assert await states(world) == {"settings": "Error"}
    [node] = (await world.get(GRAPH, "g"))["status"]["nodes"]
    assert node["reason"] == "AccountMissing"
    assert "name one of this namespace in spec.serviceAccountName" in node["message"]


async def test_objects_are_written_with_the_rights_that_the_owner_gives(world: World) -> None:
    await start_engine_of(world, CONFIG_MAP)
    writers: list[str] = []

    def note(request: Any) -> None:
        if request.resource == "configmaps" and request.verb == "patch":
            writers.append(request.user)

    world.audit.subscribe(note)
    [owner] = await world.apply(bundle("app-1"))
    await world.apply(graph(MAP, owner=owner))
    assert await states(world) == {"settings": "Ready"}
    assert writers
    assert world.user(IDENTITY) not in writers
    assert (await world.client.get(CONFIG_MAP, "settings", TEAM))["data"] == {"a": "b"}
