"""Bundles with what controllers have recorded of their promotions, without a controller that would go on."""

from __future__ import annotations

from typing import Any

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.kinds import BUNDLE
from tests.support.names import TEAM
from tests.support.objects import bundle
from tests.support.world import World

__all__ = ["put_bundle", "verified"]


async def put_bundle(
    world: World, name: str, *, environments: JsonObject, sequence: int = 1, phase: str = "Verified", **fields: Any
) -> None:
    """Create a Bundle and write its status."""
    await world.apply(bundle(name, **fields))
    status = {"phase": phase, "pipeline": "my-app", "sequence": sequence, "environments": environments}
    await world.client.patch(BUNDLE, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")


def verified(hour: int, **fields: Any) -> JsonObject:
    """Return the entry of an environment in which the promotion took a quarter of an hour."""
    moments = {"startedAt": f"2026-03-03T{hour:02}:00:00Z", "promotedAt": f"2026-03-03T{hour:02}:05:00Z"}
    return {"state": "Verified", **moments, "verifiedAt": f"2026-03-03T{hour:02}:15:00Z", **fields}
