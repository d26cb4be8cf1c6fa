"""Reads the parts of a Bundle, and of other objects, that tests compare."""

from __future__ import annotations

from collections.abc import Callable

from kardinal.kube import PatchType
from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE
from tests.support.names import TEAM
from tests.support.world import World

__all__ = ["REPOSITORY", "condition", "gone", "node_of", "patch", "phase", "reason", "states"]

REPOSITORY = "file:///repo"


def phase(name: str) -> Callable[[JsonObject], bool]:
    return lambda obj: bool(obj.get("status", {}).get("phase") == name)


def condition(obj: JsonObject, kind: str = "Ready") -> JsonObject | None:
    conditions = obj.get("status", {}).get("conditions", [])
    return next((entry for entry in conditions if entry["type"] == kind), None)


def reason(obj: JsonObject) -> str | None:
    ready = condition(obj)
    return ready["reason"] if ready else None


def states(obj: JsonObject) -> dict[str, str]:
    return {name: entry["state"] for name, entry in obj["status"].get("environments", {}).items()}


def node_of(environment: str, gate: str | None = None) -> str:
    """Return the id of the node that a step of an environment is, or a gate before it."""
    key = (environment,) if gate is None else (TEAM, gate, environment)
    return names.node_ids([environment], [(TEAM, gate, environment)] if gate else [])[key]


async def patch(world: World, name: str, body: JsonObject) -> None:
    await world.client.patch(BUNDLE, name, TEAM, body, kind=PatchType.MERGE)


async def gone(world: World, resource: ResourceType, name: str) -> bool:
    return await world.find(resource, name) is None
