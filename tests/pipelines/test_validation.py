"""A Pipeline says whether Bundles can be translated with it."""

from __future__ import annotations

from kardinal.promotion.kinds import PIPELINE
from kardinal_controller.program import ControlPlane
from tests.bundles.reading import REPOSITORY, condition, reason
from tests.support.names import DEV
from tests.support.objects import environment, pipeline
from tests.support.world import World


async def test_ready_says_whether_a_pipeline_can_be_translated(world: World, controller: ControlPlane) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[environment(DEV, update={"strategy": "oci"})]))
    bad = await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) == "NotAvailable")
    ready = condition(bad)
    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("False", 1)
    assert "spec.environments[0].update.strategy: 'oci' is not available" in ready["message"]
    await world.settle()
    assert [event["regarding"]["name"] for event in await world.events("NotAvailable")] == ["my-app"]
    await world.apply(pipeline(REPOSITORY))
    good = await world.wait_for(PIPELINE, "my-app", lambda obj: reason(obj) == "Translatable")
    ready = condition(good)
    assert ready is not None
    assert (ready["status"], ready["observedGeneration"]) == ("True", 2)
