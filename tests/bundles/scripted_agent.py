"""A control plane without an agent: the test is the agent, so that every state of a step can be seen."""

from __future__ import annotations

from datetime import datetime

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.support.names import TEAM
from tests.support.objects import pipeline
from tests.support.programs import start_controller
from tests.support.world import World

__all__ = ["ScriptedAgent", "agent", "controller", "running"]


class ScriptedAgent:
    """Writes the status of PromotionSteps as the test says, in the place of an agent."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def step(self, name: str, **status: object) -> JsonObject:
        """Wait for a PromotionStep and give it a status."""
        await self._world.wait_for(PROMOTION_STEP, name, lambda _: True)
        return await self._world.client.patch(
            PROMOTION_STEP, name, TEAM, {"status": status}, kind=PatchType.MERGE, subresource="status"
        )

    async def prepare(self, name: str) -> None:
        """Let a step have a good edit that waits to be written."""
        await self.step(name, state="Promoting", preparedAt=format_time(self._world.clock.now()))

    async def land(self, name: str) -> None:
        """Let the change of a step land."""
        await self.step(name, state="HealthChecking", promotedAt=format_time(self._world.clock.now()))

    async def verify(self, *names: str) -> datetime:
        """Let steps be Verified now, one after the other; returns when that was."""
        moment = self._world.clock.now()
        now = format_time(moment)
        times = {"promotedAt": now, "verifiedAt": now, "healthySince": now}
        for name in names:
            await self.step(name, state="Verified", healthy=True, commit="c0ffee" + "0" * 34, **times)
        return moment


@pytest.fixture
async def controller(world: World) -> ControlPlane:
    return await start_controller(world, standalone=False)


@pytest.fixture
def agent(world: World) -> ScriptedAgent:
    return ScriptedAgent(world)


@pytest.fixture
async def running(world: World, controller: ControlPlane) -> ControlPlane:
    """Return a control plane that knows a Pipeline of three environments."""
    await world.apply(pipeline("file:///repo"))
    return controller
