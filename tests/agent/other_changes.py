"""A Pipeline that asks for statuses on the pull requests of others, and the controller's answer about its gates."""

from __future__ import annotations

from typing import Any

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import PIPELINE
from tests.agent.sites import Site
from tests.support.fake_gitea import FakeGitea
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.world import World

__all__ = ["answer", "asking", "patched"]


def asking(host: FakeGitea | Site, name: str = "my-app", **spec: Any) -> JsonObject:
    """Return a Pipeline that asks for statuses on others."""
    provider = host.provider if isinstance(host, Site) else "gitea"
    made = pipeline(host.url, name=name, provider=provider, **spec)
    made["spec"]["git"] |= {"secretRef": {"name": "git"}, "statusOnOthers": True, **spec.get("git", {})}
    return made


async def answer(world: World, name: str = "my-app", until: str | None = None, **held: str) -> None:
    """Write what the controller says of the gates; an environment is held for its reason."""
    current = await world.get(PIPELINE, name)
    answers = {
        "observedGeneration": current["metadata"]["generation"],
        "evaluatedAt": format_time(world.clock.now()),
        "until": until,
        "held": [{"environment": one.replace("_", "-"), "reason": reason} for one, reason in held.items()],
    }
    await patched(world, {"otherChanges": answers}, name)


async def patched(world: World, status: JsonObject, name: str = "my-app") -> None:
    await world.client.patch(PIPELINE, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status")
    await world.settle()
