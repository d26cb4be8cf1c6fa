"""Kinds that are not the engine's own: installed and removed beside Graphs, watched while a Graph needs them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, GRAPH, JsonObject, ResourceType
from kardinal.runtime.dynamic import LINGER
from kardinal_controller.graphs import GraphsOfPersons
from tests.graph.cluster import config
from tests.graph.program import IDENTITY, GraphEngine, Walks, Writes, existing, graph, states, text
from tests.support.accounts import make_account, rule
from tests.support.names import TEAM
from tests.support.world import World

WIDGET = ResourceType("example.com", "v1", "Widget", "widgets")
A_LITTLE_LATER = timedelta(seconds=LINGER + 1)


def definition() -> JsonObject:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


def widget(identifier: str, **fields: Any) -> JsonObject:
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": identifier}, **fields}
    return {"id": identifier, "template": body}


def of_account(*nodes: JsonObject, name: str = "g") -> JsonObject:
    made = graph(*nodes, name=name)
    made["spec"]["serviceAccountName"] = "deployer"
    return made


async def install(world: World) -> None:
    await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition())


async def remove(world: World) -> None:
    await world.client.delete(CUSTOM_RESOURCE_DEFINITION, "widgets.example.com")


def watched(engine: GraphEngine) -> set[str]:
    """Return the kinds that are watched only while a Graph needs them."""
    return {informer.resource.kind for informer in engine.manager.dynamic.informers}


async def until_ready(world: World, name: str = "g") -> None:
    """Wait until every node is ready: a kind that was just installed is served a moment later."""

    async def is_ready() -> bool:
        found = (await world.get(GRAPH, name)).get("status", {}).get("nodes", ())
        return bool(found) and all(node["state"] == "Ready" for node in found)

    await world.until(is_ready)
    await world.settle()


@pytest.fixture
async def engine(world: World) -> GraphEngine:
    """Start the engine for Graphs of persons, with an account that may do everything with ConfigMaps and Widgets."""
    await make_account(world, "deployer", rule("*", on="configmaps"), rule("*", on="widgets", group="example.com"))

    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[GraphsOfPersons()])

    return await world.run(build, identity=IDENTITY)


@pytest.mark.case("A57")
@pytest.mark.usefixtures("engine")
async def test_kind_that_is_installed_later_is_followed_without_an_edit(world: World) -> None:
    await world.apply(of_account(widget("w", size=3), config("a", {"x": "${string(w.size)}"})))
    assert await states(world) == {"w": "Pending", "a": "Pending"}
    [node, _] = (await world.get(GRAPH, "g"))["status"]["nodes"]
    assert (node["reason"], node["message"][:33]) == ("KindNotInstalled", "example.com/v1 Widget is not inst")
    await install(world)
    await world.until(lambda: world.find(CONFIG_MAP, "a"))
    assert await states(world) == {"w": "Ready", "a": "Ready"}
    assert await text(world, "a") == "x=3"
    await remove(world)

    async def is_pending() -> bool:
        return (await states(world))["w"] == "Pending"

    await world.until(is_pending)
    assert await text(world, "a") == "x=3"
    await install(world)
    await until_ready(world)
    assert (await world.get(WIDGET, "w"))["size"] == 3


@pytest.mark.virtual_time("a watch goes on for a while after the last Graph")
async def test_kind_is_watched_while_a_graph_needs_it(world: World, engine: GraphEngine) -> None:
    assert watched(engine) == set()
    await install(world)
    await world.apply(of_account(widget("w")), of_account(config("c"), name="other"))
    await until_ready(world)
    await until_ready(world, "other")
    assert watched(engine) == {"ConfigMap", "CustomResourceDefinition", "Widget"}
    await world.apply(of_account(config("c2")))
    await until_ready(world)
    assert await world.find(WIDGET, "w") is None
    for name in ("g", "other"):
        await world.delete(GRAPH, name)
    await world.settle()
    assert [await world.find(CONFIG_MAP, name) for name in ("c", "c2")] == [None, None]
    await world.live(A_LITTLE_LATER)
    assert watched(engine) == set()


async def test_objects_of_other_kinds_wake_the_graphs_that_they_concern(world: World, engine: GraphEngine) -> None:
    reader = {"id": "r", "ref": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs"}}}
    await world.apply(existing("theirs", {"x": "1"}))
    walks = Walks(world, engine)
    writes = Writes(world)
    await world.apply(of_account(reader, config("b", {"x": "${r.data.x}"})), of_account(config("c"), name="other"))
    assert await walks.take() == 2
    await writes.take()
    await world.client.patch(CONFIG_MAP, "theirs", TEAM, {"data": {"x": "2"}})
    assert await walks.take() == 1
    assert await text(world, "b") == "x=2"
    await world.client.patch(CONFIG_MAP, "b", TEAM, {"data": {"x": "by hand"}})
    assert await walks.take() == 1
    assert await text(world, "b") == "x=2"
    await world.apply(existing("nobodys"))
    assert await walks.take() == 0


async def test_restart_finds_the_objects_of_nodes_that_are_gone(world: World, engine: GraphEngine) -> None:
    await install(world)
    await world.apply(of_account(widget("w"), config("a")))
    await until_ready(world)
    await world.stop(engine)
    await world.apply(of_account(config("a")))

    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[GraphsOfPersons()])

    await world.run(build, identity=IDENTITY)
    assert await states(world) == {"a": "Ready"}
    assert await world.find(WIDGET, "w") is None


@pytest.mark.usefixtures("engine")
async def test_graph_of_a_kind_that_is_gone_can_be_deleted(world: World) -> None:
    await install(world)
    await world.apply(of_account(widget("w"), config("a")))
    await until_ready(world)
    await remove(world)
    await world.settle()
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(GRAPH, "g") is None
    assert await world.find(CONFIG_MAP, "a") is None
