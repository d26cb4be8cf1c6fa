"""The engine alone, as a program in a world: no promotion around it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kardinal.clock import Clock
from kardinal.git import GitRunner
from kardinal.graph.identity import GRAPH_LABEL
from kardinal.kube import Client
from kardinal.objects import CONFIG_MAP, GRAPH, JsonObject, ResourceType
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.runtime import Manager, Source
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.graphs import GraphOwner, graph_controller
from kardinal_controller.graphs.ownership import ADMITTED, Admission
from tests.support.names import TEAM
from tests.support.world import World

IDENTITY = "simulator"
"""The nodes here are mostly ConfigMaps, which a controller may not touch and the stand-in for a GitOps tool may."""


KINDS = (BUNDLE, CONFIG_MAP, GRAPH, POLICY_GATE, PROMOTION_STEP)


class TrustedGraphs:
    """Has every Graph walked that objects of a kind control, or with None that no object controls."""

    makes: Collection[ResourceType] = ()
    records_specs = False

    def __init__(
        self, client: Client, resource: ResourceType | None, *, kinds: Collection[ResourceType] = KINDS
    ) -> None:
        self.resource = resource
        self.kinds = kinds
        self._client = client

    def changes(self) -> Sequence[Source]:
        return ()

    async def admission(self, graph: JsonObject) -> Admission:
        return ADMITTED

    def identity(self, graph: JsonObject) -> Client:
        return self._client


class GraphEngine:
    """A manager with the engine and nothing else; `runner` is what every program of a world has."""

    def __init__(self, client: Client, *, clock: Clock, owners: Sequence[GraphOwner] = ()) -> None:
        self.manager = Manager(client, clock=clock, name="graph-engine")
        self.runner = GitRunner(workers=1)
        expressions = ExpressionCompiler()
        self.manager.add(expressions)
        graph_controller(
            self.manager,
            client,
            clock=clock,
            owners=owners or [TrustedGraphs(client, owner) for owner in (None, BUNDLE, GRAPH)],
            expressions=expressions,
        )

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
        self.runner.close()


async def start_engine(world: World) -> GraphEngine:
    return await world.run(lambda client: GraphEngine(client, clock=world.clock), identity=IDENTITY)


def graph(*nodes: JsonObject, name: str = "g", owner: JsonObject | None = None) -> JsonObject:
    """Return a Graph as a person writes it, or as the translator does on behalf of `owner`."""
    metadata: JsonObject = {"name": name, "namespace": TEAM}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        names = {field: owner["metadata"][field] for field in ("name", "uid")}
        metadata["ownerReferences"] = [reference | names]
    return {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.kind,
        "metadata": metadata,
        "spec": {"nodes": list(nodes)},
    }


class Walks:
    """The number of reconciles of an engine since it was last asked."""

    def __init__(self, world: World, engine: GraphEngine) -> None:
        self._world = world
        self._metrics = engine.manager.metrics
        self._before = self._total()

    async def take(self) -> int:
        """Once nothing more happens."""
        await self._world.settle()
        before = self._before
        self._before = self._total()
        return self._before - before

    def _total(self) -> int:
        labels = [{"controller": "graph", "result": result} for result in ("success", "requeue_after", "error")]
        found = (self._metrics.get_sample_value("controller_runtime_reconcile_total", each) for each in labels)
        return sum(int(value or 0) for value in found)


class Writes:
    """The engine's requests that change something, as `verb resource/name`, since it was last asked."""

    def __init__(self, world: World) -> None:
        self._seen: list[str] = []
        self._world = world
        world.audit.subscribe(self._note)

    def _note(self, request: Any) -> None:
        if request.user == self._world.user(IDENTITY) and request.verb in ("create", "update", "patch", "delete"):
            what = request.resource.partition(".")[0] + (f"/{request.subresource}" if request.subresource else "")
            self._seen.append(f"{request.verb} {what}/{request.name}".rstrip("/"))

    async def take(self) -> list[str]:
        """Once nothing more happens."""
        await self._world.settle()
        seen = self._seen
        self._seen = []
        return sorted(seen)


async def states(world: World, name: str = "g") -> dict[str, str]:
    """Return the state of every node, once nothing more happens."""
    await world.settle()
    obj = await world.get(GRAPH, name)
    return {node["id"]: node["state"] for node in obj["status"].get("nodes", ())}


async def condition(world: World, type_: str, name: str = "g") -> tuple[str, str, str]:
    await world.settle()
    obj = await world.get(GRAPH, name)
    found = next(each for each in obj["status"]["conditions"] if each["type"] == type_)
    return found["status"], found["reason"], found["message"]


async def set_status(world: World, resource: Any, name: str, **fields: Any) -> None:
    """Write status as the controller of that kind would."""
    await world.client.patch(resource, name, TEAM, {"status": fields}, subresource="status")


async def set_data(world: World, name: str, **fields: str | None) -> None:
    """Write fields of a ConfigMap that no node writes, as the controller of an object writes its status."""
    await world.client.patch(CONFIG_MAP, name, TEAM, {"data": fields})


async def nodes_of(world: World, name: str = "g") -> dict[str, JsonObject]:
    """Return the nodes in the status of a Graph by id, once nothing more happens."""
    await world.settle()
    return {node["id"]: node for node in (await world.get(GRAPH, name))["status"].get("nodes", ())}


async def made_by_graphs(world: World, resource: ResourceType = CONFIG_MAP) -> set[str]:
    """Return the names of the objects of a kind that Graphs have made."""
    return {obj["metadata"]["name"] for obj in await world.objects(resource, TEAM, labels=GRAPH_LABEL)}


def existing(name: str, data: JsonObject | None = None, **labels: str) -> JsonObject:
    """Return a ConfigMap that belongs to no node."""
    metadata = {"name": name, "namespace": TEAM, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data or {}}


async def text(world: World, name: str) -> str:
    """Return the data of a ConfigMap, in short."""
    obj = await world.get(CONFIG_MAP, name)
    return ",".join(f"{key}={value}" for key, value in sorted(obj.get("data", {}).items()))
