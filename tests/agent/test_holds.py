"""A freeze, or a gate turning red again, stops a promotion at its next effect; releasing it lets it go on at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.api import names
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import (
    close_gate,
    create,
    deploy,
    freeze,
    gate_instance,
    open_gate,
    promotion_step,
    put,
    put_gate,
    reached,
    start_agent,
    state,
)
from tests.support.names import DEV, POLICIES
from tests.support.repository import APPLICATION, IMAGE, GitRepository
from tests.support.world import World

GATE = f"my-app-1-{DEV}-soak"
FREEZE = names.freeze_name(APPLICATION)
AT_ONCE = timedelta(0)


def held(status: JsonObject) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in status["conditions"] if one["type"] == "Held")
    return found


async def until_held(world: World) -> JsonObject:
    async def is_held() -> JsonObject | None:
        status = await state(world)
        conditions = {one["type"]: one["status"] for one in status.get("conditions", [])}
        return status if conditions.get("Held") == "True" else None

    found: JsonObject = await world.until(is_held)
    return found


async def test_a_freeze_holds_the_push_and_is_named_in_the_status(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    await freeze(world)
    await create(world, promotion_step(repository))
    status = await until_held(world)
    said = "held by a freeze of my-app (PolicyGate my-app-freeze): release freeze"
    assert held(status)["message"] == status["message"] == said
    assert repository.promotions(DEV) == []
    (event,) = await world.events("Held")
    assert event["note"] == said

    await world.delete(POLICY_GATE, FREEZE)
    status = await reached(world, "Verified", within=AT_ONCE)
    assert held(status)["status"] == "False"
    assert len(repository.promotions(DEV)) == 1


async def test_held_promotion_costs_no_requests(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await freeze(world)
    await create(world, promotion_step(repository))
    await until_held(world)
    await world.settle()
    requests = world.audit.writes
    await world.idle(timedelta(hours=2))
    assert world.audit.writes == requests


async def test_a_freeze_holds_the_verdict_and_health_is_looked_at_again_afterwards(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository))
    await reached(world, "HealthChecking")
    await freeze(world)
    await deploy(world)
    status = await until_held(world)
    assert status["state"] == "HealthChecking"

    await deploy(world, image=f"{IMAGE}:1.0.0")
    await world.delete(POLICY_GATE, FREEZE)
    await world.settle()
    assert (await state(world))["state"] == "HealthChecking"
    await deploy(world)
    await reached(world, "Verified", within=AT_ONCE)


async def test_a_freeze_holds_the_agents_own_merge(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await world.stop(agent)
    await freeze(world)
    await put(world, promotion_step(repository, approval="auto", pr=True))
    await start_agent(world)
    status = await until_held(world)
    assert status["state"] == "WaitingForMerge"
    assert (await reviewer.get(1)).state == "open"
    await world.delete(POLICY_GATE, FREEZE)
    await reached(world, "Verified", within=AT_ONCE)


async def test_an_answer_that_time_has_ended_opens_nothing_while_no_controller_renews_it(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await deploy(world)
    await freeze(world)
    await put_gate(world, GATE)
    noon = world.clock.now() + timedelta(seconds=3)
    await open_gate(world, GATE, "schedule.hour = 11", until=noon)
    await create(world, promotion_step(repository, requiredGates=[GATE]))
    await until_held(world)
    await world.live(timedelta(seconds=4))
    await world.delete(POLICY_GATE, FREEZE)
    await world.settle()
    said = f"held by gate soak: its answer counted until {format_time(noon)}, and is not evaluated again yet"
    assert (await state(world))["message"] == said
    assert repository.promotions(DEV) == []

    await open_gate(world, GATE, "bundle.labels.hotfix = yes", until=noon + timedelta(hours=1))
    await reached(world, "Verified", within=AT_ONCE)


async def test_a_required_gate_must_be_there_and_ready(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, requiredGates=[GATE]))
    assert (await until_held(world))["message"] == f"held: its gate {GATE} does not exist"

    await put_gate(world, GATE)
    await world.settle()
    assert (await state(world))["message"] == "held by gate soak: soak first"
    await close_gate(world, GATE)
    await world.settle()
    assert repository.promotions(DEV) == []

    await open_gate(world, GATE)
    status = await reached(world, "Verified", within=AT_ONCE)
    (result,) = status["evidence"]["policyGates"]
    assert result == {
        "name": "soak",
        "namespace": POLICIES,
        "templateGeneration": 1,
        "scope": "org",
        "result": "pass",
        "reason": "soaked 45m of 30m",
    }


async def test_a_gate_that_turns_red_again_holds_what_is_under_way(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await create(world, promotion_step(repository, requiredGates=[GATE]))
    await reached(world, "HealthChecking")
    await close_gate(world, GATE, reason="error rate 5%")
    await deploy(world)
    assert (await until_held(world))["message"] == "held by gate soak: error rate 5%"
    await open_gate(world, GATE)
    await reached(world, "Verified", within=AT_ONCE)


@pytest.mark.parametrize("labels", [{}, {names.LABEL_TYPE: "gate"}])
async def test_a_gate_that_only_has_the_name_of_a_freeze_freezes_nothing(
    world: World, repository: GitRepository, labels: dict[str, str]
) -> None:
    await start_agent(world)
    await deploy(world)
    gate = gate_instance(FREEZE)
    gate["metadata"]["labels"] = labels
    await world.apply(gate)
    await create(world, promotion_step(repository))
    await reached(world, "Verified")
