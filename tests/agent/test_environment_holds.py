"""A hold keeps every Bundle but one from an environment, also those whose Graphs were made before it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.policy.hold_gate import hold_gate
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent, state
from tests.support.names import DEV, PROD, TEAM
from tests.support.repository import APPLICATION, GitRepository
from tests.support.world import World

HOLD = names.hold_name(APPLICATION, DEV)
AT_ONCE = timedelta(0)


def hold(bundle: str = "another", *, environment: str = DEV, pipeline: str = APPLICATION) -> JsonObject:
    return hold_gate(pipeline, environment, namespace=TEAM, bundle=bundle, message="rolled back by alice")


async def test_a_hold_keeps_a_bundle_from_its_environment_until_it_is_ended(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(hold())
    await create(world, promotion_step(repository))

    async def held() -> bool:
        return "hold" in (await state(world)).get("message", "")

    await world.until(held)
    assert (await state(world))["message"] == (
        f"held by a hold on {DEV} (PolicyGate {HOLD}): rolled back by alice; "
        f"to end it: kardinal resume my-app --env {DEV}"
    )
    assert repository.promotions(DEV) == []
    await world.delete(POLICY_GATE, HOLD)
    await reached(world, "Verified", within=AT_ONCE)
    assert len(repository.promotions(DEV)) == 1


async def test_the_bundle_that_a_hold_names_passes_at_once_when_it_is_named(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(hold())
    await create(world, promotion_step(repository))
    await world.settle()
    assert repository.promotions(DEV) == []
    await world.client.patch(
        POLICY_GATE, HOLD, TEAM, {"spec": {"exceptBundle": BUNDLE_NAME}}, kind=PatchType.MERGE, field_manager="person"
    )
    await reached(world, "Verified", within=AT_ONCE)


def _elsewhere(gate: JsonObject, **metadata: object) -> JsonObject:
    return {**gate, "metadata": {**gate["metadata"], **metadata}}


OTHERS = {
    "of another environment": hold(environment=PROD),
    "of another Pipeline": hold(pipeline="other"),
    "another Pipeline's, under this name": _elsewhere(hold(pipeline="other"), name=HOLD),
    "another environment's, under this name": _elsewhere(hold(environment=PROD), name=HOLD),
    "of no type": _elsewhere(hold(), labels={names.LABEL_PIPELINE: APPLICATION}),
    "of the type of a freeze": _elsewhere(
        hold(), labels={names.LABEL_PIPELINE: APPLICATION, names.LABEL_TYPE: names.TYPE_FREEZE}
    ),
}


async def test_other_gates_hold_nothing_here(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    for gate in OTHERS.values():
        if gate["metadata"]["name"] != HOLD:
            await world.apply(gate)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")


@pytest.mark.parametrize("gate", [each for each in OTHERS.values() if each["metadata"]["name"] == HOLD])
async def test_a_gate_that_only_has_the_name_of_a_hold_holds_nothing(
    world: World, repository: GitRepository, gate: JsonObject
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(gate)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
