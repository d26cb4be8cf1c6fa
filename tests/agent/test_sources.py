"""The changes that move a promotion."""

from __future__ import annotations

from kardinal.api import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.objects import DEPLOYMENT, GRAPH, NAMESPACE, JsonObject, key_of
from kardinal.runtime import Channel, Manager, Watch
from kardinal.runtime.informer import Change, Event
from kardinal_agent.execution import sources
from tests.agent.promotion_steps import promotion_step
from tests.support.world import World


def in_state(state: str) -> JsonObject:
    return {**promotion_step("file:///repo"), "status": {"state": state}}


async def test_a_promotion_is_run_again_when_the_cache_knows_that_its_health_is_checked(world: World) -> None:
    """A Deployment is mapped to the steps that the cache has in that state; one that was ready before found none."""
    manager = Manager(world.client, clock=world.clock, name="unstarted")
    steps = manager.informer(PROMOTION_STEP)
    found = sources(
        steps=steps,
        graphs=manager.informer(GRAPH),
        bundles=manager.informer(BUNDLE),
        gates=manager.informer(POLICY_GATE),
        deployments=manager.informer(DEPLOYMENT),
        namespaces=manager.informer(NAMESPACE),
        merges=Channel(),
    )
    before, after = in_state("Promoting"), in_state("HealthChecking")
    event = Event(Change.UPDATED, key_of(after), before, after)
    watches = [each for each in found if isinstance(each, Watch) and each.informer is steps]
    assert any(watch.when is not None and watch.when(event) for watch in watches)
    progress = Event(
        Change.UPDATED, key_of(after), after, {**after, "status": {"state": "HealthChecking", "message": "x"}}
    )
    assert not any(watch.when is not None and watch.when(progress) for watch in watches)
