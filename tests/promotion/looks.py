"""What tests look at in a Bundle."""

from __future__ import annotations

from collections.abc import Callable

from kardinal.api import BUNDLE, ResourceType
from kardinal.kube import JsonObject, PatchType
from tests.support.world import World

__all__ = ["REPOSITORY", "condition", "gone", "patch", "phase", "reason", "states"]

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


async def patch(world: World, name: str, body: JsonObject) -> None:
    await world.client.patch(BUNDLE, name, "default", body, kind=PatchType.MERGE)


async def gone(world: World, resource: ResourceType, name: str) -> bool:
    return await world.find(resource, name) is None
