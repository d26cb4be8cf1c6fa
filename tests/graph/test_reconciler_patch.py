"""Patches against an API server: fields on objects of others, with the rights of an account."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, GRAPH, JsonObject
from kardinal_controller.graphs import GraphsOfPersons
from tests.graph.cluster import config
from tests.graph.program import IDENTITY, GraphEngine, Writes, condition, existing, graph, states, text
from tests.support.accounts import make_account, rule
from tests.support.names import TEAM
from tests.support.world import World

ACCOUNT = f"system:serviceaccount:{TEAM}:deployer"


def of_account(*nodes: JsonObject) -> JsonObject:
    made = graph(*nodes)
    made["spec"]["serviceAccountName"] = "deployer"
    return made


def patch(identifier: str, fields: JsonObject, *, name: str = "theirs") -> JsonObject:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **fields}
    return {"id": identifier, "patch": body}


def deployment(**fields: Any) -> JsonObject:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": TEAM, "labels": labels},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod},
        **fields,
    }


@pytest.fixture(autouse=True)
async def engine(world: World) -> GraphEngine:
    """Start the engine for Graphs of persons, with an account that may do everything with two kinds."""
    deployments = {"apiGroups": ["apps"], "resources": ["deployments", "deployments/status"], "verbs": ["*"]}
    await make_account(world, "deployer", rule("*", on="configmaps"), deployments)

    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[GraphsOfPersons()])

    return await world.run(build, identity=IDENTITY)


@pytest.mark.case("A55")
async def test_fields_come_when_the_object_does_and_go_with_the_graph(world: World) -> None:
    await world.apply(of_account(patch("p", {"data": {"x": "1"}})))
    assert await states(world) == {"p": "Pending"}
    assert (await condition(world, "Ready"))[2] == f"p: ConfigMap {TEAM}/theirs does not exist"
    [theirs] = await world.apply(existing("theirs", {"theirs": "kept"}, app="web"))
    assert await states(world) == {"p": "Ready"}
    assert await text(world, "theirs") == "theirs=kept,x=1"
    await world.delete(GRAPH, "g")
    await world.settle()
    assert await world.find(GRAPH, "g") is None
    after = await world.get(CONFIG_MAP, "theirs")
    assert (after["metadata"]["uid"], after["data"]) == (theirs["metadata"]["uid"], {"theirs": "kept"})
    assert after["metadata"]["labels"] == {"app": "web"}
    assert "annotations" not in after["metadata"]
    managers = {entry["manager"] for entry in after["metadata"]["managedFields"]}
    assert f"g.{TEAM}.internal.kro.run" not in managers


async def test_fields_of_a_removed_node_are_given_up_before_those_that_it_followed(world: World) -> None:
    await world.apply(existing("one", {"z": "0"}, app="one"), existing("two", {"z": "0"}, app="two"))
    first = patch("first", {"data": {"x": "1"}}, name="one")
    second = patch("second", {"data": {"y": "${first.data.x}"}}, name="two")
    await world.apply(of_account(first, second))
    assert await states(world) == {"first": "Ready", "second": "Ready"}
    released: list[str] = []

    def note(request: Any) -> None:
        if request.user == ACCOUNT and request.verb == "patch":
            released.append(request.name)

    subscription = world.audit.subscribe(note)
    await world.apply(of_account())
    await world.settle()
    subscription.close()
    assert released == ["two", "one"]
    assert [await text(world, name) for name in ("one", "two")] == ["z=0", "z=0"]


@pytest.mark.case("A56")
async def test_status_of_a_patch_is_written_to_the_subresource(world: World) -> None:
    [before] = await world.apply(deployment())
    condition = {"type": "Checked", "status": "True", "reason": "Scanned"}
    wanted = {"conditions": [condition]}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "status": wanted}
    await world.apply(of_account({"id": "p", "patch": body}))
    assert await states(world) == {"p": "Ready"}
    after = await world.get(DEPLOYMENT, "web")
    [found] = [each for each in after["status"]["conditions"] if each["type"] == "Checked"]
    assert condition.items() <= found.items()
    assert after["spec"] == before["spec"]
    await world.apply(of_account())
    await world.settle()
    after = await world.get(DEPLOYMENT, "web")
    assert not [each for each in after["status"].get("conditions", ()) if each["type"] == "Checked"]
    assert not [key for key in after["metadata"].get("labels", {}) if "internal.kro.run" in key]


async def test_conflict_names_the_manager_and_the_field(world: World) -> None:
    await world.apply(existing("theirs", {"x": "theirs"}, app="web"))
    await world.apply(of_account(patch("p", {"data": {"x": "1"}}), config("b")))
    assert await states(world) == {"p": "Conflict", "b": "Ready"}
    status, reason, message = await condition(world, "Ready")
    assert (status, reason) == ("False", "Conflict")
    assert "conflict with " in message
    assert ".data.x" in message
    assert await text(world, "theirs") == "x=theirs"


async def test_field_that_its_owner_takes_back_is_a_conflict(world: World) -> None:
    await world.apply(existing("theirs", {"z": "0"}, app="web"))
    await world.apply(of_account(patch("p", {"data": {"x": "1"}})))
    await world.settle()
    await world.client.patch(CONFIG_MAP, "theirs", TEAM, {"data": {"x": "by hand"}})
    assert await states(world) == {"p": "Conflict"}
    assert await text(world, "theirs") == "x=by hand,z=0"


async def test_restart_writes_no_patch_again(world: World, engine: GraphEngine) -> None:
    await world.apply(existing("theirs", {"z": "0"}, app="web"), of_account(patch("p", {"data": {"x": "1"}})))
    await world.settle()
    await world.stop(engine)
    writes = Writes(world)

    def build(client: Client) -> GraphEngine:
        return GraphEngine(client, clock=world.clock, owners=[GraphsOfPersons()])

    await world.run(build, identity=IDENTITY)
    assert await states(world) == {"p": "Ready"}
    assert [write for write in await writes.take() if "reviews" not in write] == []
