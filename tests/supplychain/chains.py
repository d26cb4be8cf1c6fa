"""Supply chains as a program in a world, and the objects that operators and developers write for it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import CUSTOM_RESOURCE_DEFINITION, JsonObject, ResourceType
from kardinal_local.stack import until_served
from kardinal_supplychain.api import kinds
from kardinal_supplychain.options import SupplyChainOptions
from kardinal_supplychain.program import SupplyChains
from tests.support.accounts import make_account
from tests.support.names import TEAM
from tests.support.world import KINDS, World

IDENTITY = "simulator"
"""The program may watch and impersonate everything here; tests of rights give accounts fewer of them."""

KILLS = 20
"""The kills of the program in one random story."""
KILL_SEEDS = range(int(os.environ.get("KILLS", "100")) // KILLS)

API_VERSION = f"{kinds.GROUP}/{kinds.VERSION}"
DEFINITIONS = Path(__file__).parents[2] / "crds" / "supplychain"
OUR_KINDS = {
    (resource.api_version, resource.kind): resource
    for resource in vars(kinds).values()
    if isinstance(resource, ResourceType)
}


@cache
def definitions() -> Sequence[JsonObject]:
    return [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(DEFINITIONS.glob("*.yaml"))]


async def install_kinds(world: World) -> None:
    for definition in definitions():
        await world.client.create(CUSTOM_RESOURCE_DEFINITION, definition)
    await until_served(world.client, {each["metadata"]["name"] for each in definitions()})


async def apply(world: World, *objects: JsonObject) -> None:
    """Write objects as their authors would."""
    for obj in objects:
        kind = obj["apiVersion"], obj["kind"]
        await world.client.apply((OUR_KINDS | KINDS)[kind], obj, field_manager="test", force=True)


class RunningChains(SupplyChains):
    """The program as a world runs it; no program of supply chains does Git work."""

    runner = None

    def __init__(self, client: Client, *, clock: Clock, **options: Any) -> None:
        super().__init__(SupplyChainOptions(**options), client, clock=clock)


class Chains:
    """A world in which the kinds of supply chains are served, and their program runs."""

    def __init__(self, world: World, program: RunningChains, *, identity: str = IDENTITY) -> None:
        self.world = world
        self.program = program
        self._identity = identity

    @classmethod
    async def start(cls, world: World, *, identity: str = IDENTITY, **options: Any) -> Chains:
        await install_kinds(world)
        return cls(world, await cls.run(world, identity=identity, **options), identity=identity)

    @staticmethod
    async def run(world: World, *, identity: str = IDENTITY, **options: Any) -> RunningChains:
        """Start a program where the kinds are served already."""
        return await world.run(lambda client: RunningChains(client, clock=world.clock, **options), identity=identity)

    async def restart(self) -> None:
        await self.world.stop(self.program)
        self.program = await self.run(self.world, identity=self._identity)

    async def apply(self, *objects: JsonObject) -> None:
        """Write objects as their authors would, and wait until nothing more happens."""
        await apply(self.world, *objects)
        await self.world.settle()

    async def account(self, name: str, *rules: JsonObject, namespace: str = TEAM) -> None:
        """Make a ServiceAccount with these rights in its namespace, as which the program may act."""
        await make_account(self.world, name, *rules, namespace=namespace, lent_to=self._identity)
        await self.world.settle()

    async def get(self, resource: ResourceType, name: str, namespace: str = TEAM) -> JsonObject:
        await self.world.settle()
        return await self.world.get(resource, name, namespace)

    async def status(self, name: str = "web", resource: ResourceType = kinds.WORKLOAD) -> JsonObject:
        """Return the status of an owner, once nothing more happens."""
        status: JsonObject = (await self.get(resource, name)).get("status") or {}
        return status

    async def resource(self, resource: str, name: str = "web", kind: ResourceType = kinds.WORKLOAD) -> JsonObject:
        """Return the status of one resource of an owner."""
        found = (await self.status(name, kind)).get("resources") or ()
        return next(each for each in found if each["name"] == resource)


@dataclass(frozen=True)
class Taken:
    """Requests of the program that change something, such as `patch configmaps`, and its reconciles of owners."""

    made: list[str]
    reconciles: int


class Requests:
    """The writes and reconciles of the program since it was last asked; Events are left out."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._made: list[str] = []
        self._before = self._reconciles()
        chains.world.audit.subscribe(self._note)

    async def take(self) -> Taken:
        """Return it once nothing more happens."""
        await self._chains.world.settle()
        made = self._made
        before = self._before
        self._made = []
        self._before = self._reconciles()
        return Taken(sorted(made), self._before - before)

    def _note(self, request: Any) -> None:
        ours = request.user.startswith("system:serviceaccount:")
        if ours and request.verb in ("create", "update", "patch", "delete") and "events" not in request.resource:
            what = request.resource.partition(".")[0] + (f"/{request.subresource}" if request.subresource else "")
            self._made.append(f"{request.verb} {what}")

    def _reconciles(self) -> int:
        labels = [
            {"controller": controller, "result": result}
            for controller in ("workload", "deliverable")
            for result in ("success", "requeue_after", "error")
        ]
        metrics = self._chains.program.manager.metrics
        found = (metrics.get_sample_value("controller_runtime_reconcile_total", each) for each in labels)
        return sum(int(value or 0) for value in found)


def condition(status: Mapping[str, Any], type_: str) -> tuple[str, str, str]:
    """Return status, reason and message of a condition."""
    found = next(each for each in status["conditions"] if each["type"] == type_)
    return found["status"], found["reason"], found["message"]


def conditions(status: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return type, status and reason of all conditions, in their order."""
    return [(each["type"], each["status"], each["reason"]) for each in status.get("conditions") or ()]


def workload(name: str = "web", *, kind: str = "Workload", labels: JsonObject | None = None, **spec: Any) -> JsonObject:
    metadata = {"name": name, "namespace": TEAM, "labels": {"type": "web"} if labels is None else labels}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def deliverable(name: str = "web", **spec: Any) -> JsonObject:
    return workload(name, kind="Deliverable", **spec)


def blueprint(*resources: JsonObject, name: str = "chain", kind: str = "ClusterSupplyChain", **spec: Any) -> JsonObject:
    """Return a blueprint, which selects the label `type: web` unless `spec` has a selector."""
    body = {"selector": {"type": "web"}, "resources": list(resources), **spec}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": body}


def resource(name: str, template: str = "", *, kind: str = "ClusterConfigTemplate", **fields: Any) -> JsonObject:
    """Return a resource of a blueprint; its template has the same name unless `template` says another."""
    reference = fields.pop("templateRef", {"name": template or name})
    return {"name": name, "templateRef": {"kind": kind, **reference}, **fields}


def template(name: str, body: JsonObject, *, kind: str = "ClusterConfigTemplate", **spec: Any) -> JsonObject:
    """Return a template; that of a configuration has the data of its object as output unless `spec` says otherwise."""
    paths = {"ClusterConfigTemplate": {"configPath": "data"}}.get(kind, {})
    metadata = {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": {"template": body, **paths, **spec}}


def config_map(name: str, **data: str) -> JsonObject:
    """Return the body of a template that makes a ConfigMap; its namespace is that of the owner."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
