"""Gates on a real API server and engine, with the test in the place of the agent."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.agent.promotion_steps import freeze_gate, start_agent
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.clock import VirtualClock
from tests.support.names import DEV, EU, POLICIES, PROD, STAGING, TEAM, US, of_run
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

REPOSITORY = "file:///repo"


def ready(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is True


def closed(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is False


async def exists(world: World, name: str) -> bool:
    return await world.find(PROMOTION_STEP, name) is not None


def writes(world: World) -> int:
    return world.audit.count(verbs=["patch"], resource="policygates.kardinal.io", user=world.user("controller"))


async def begin(world: World, *gates: JsonObject, **fields: Any) -> None:
    await world.apply(pipeline(REPOSITORY), *gates)
    await world.settle()
    await world.apply(bundle("app-1", **fields))


async def test_a_gate_is_made_after_its_upstream_and_opens_by_itself_when_the_soak_is_over(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    soak = gate("soak", "bundle.upstreamSoakMinutes >= 0.05", namespace=POLICIES, recheckInterval="1h")
    await begin(world, soak)
    await agent.verify(f"app-1-{DEV}")
    await world.settle()
    assert await world.find(POLICY_GATE, f"app-1-{PROD}-soak") is None
    await world.live(timedelta(seconds=1))
    verified = await agent.verify(f"app-1-{STAGING}")
    waiting = await world.wait_for(POLICY_GATE, f"app-1-{PROD}-soak", closed)
    assert waiting["status"]["reason"] == "bundle.upstreamSoakMinutes = 0 (threshold: >= 0.05)"
    due = verified + timedelta(seconds=3)
    assert waiting["status"]["nextTransitionAt"] == format_time(due)
    assert not await exists(world, f"app-1-{PROD}")
    before = writes(world)
    opened = await world.wait_for(POLICY_GATE, f"app-1-{PROD}-soak", ready, within=timedelta(seconds=3))
    assert datetime.fromisoformat(opened["status"]["lastEvaluatedAt"]) >= due
    assert writes(world) == before + 1
    assert await exists(world, f"app-1-{PROD}")
    assert (await world.get(PROMOTION_STEP, f"app-1-{PROD}"))["spec"]["requiredGates"] == [f"app-1-{PROD}-soak"]


@pytest.mark.virtual_time("counts what an hour takes")
async def test_an_open_gate_is_renewed_only_until_its_step_exists(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    always = gate("always", "true", namespace=POLICIES, recheckInterval="5m")
    later = gate("later", "schedule.hour >= 11", namespace=POLICIES, recheckInterval="5m")
    await begin(world, always, later)
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-always", ready)
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-later", closed)
    before = writes(world)
    await world.live(timedelta(minutes=59))
    # One renewal every five minutes for the open gate, none for the closed one.
    assert writes(world) - before == 11
    assert not await exists(world, f"app-1-{PROD}")
    await world.live(timedelta(minutes=1))
    assert await exists(world, f"app-1-{PROD}")
    settled = writes(world)
    await world.live(timedelta(hours=1))
    assert writes(world) == settled


@pytest.mark.virtual_time("waits for noon")
async def test_a_gate_that_closes_again_is_written_while_its_step_is_in_flight(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await begin(world, gate("hours", "schedule.hour < 12", recheckInterval="1h"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    await world.live(timedelta(hours=2))
    shut = await world.get(POLICY_GATE, f"app-1-{PROD}-hours")
    assert shut["status"]["ready"] is False
    assert shut["status"]["lastEvaluatedAt"] == "2026-03-03T12:00:00Z"
    assert shut["status"]["reason"] == "schedule.hour = 12 (threshold: < 12)"


@pytest.mark.virtual_time("waits for noon without a controller")
async def test_pause_that_ends_past_the_hours_of_a_gate_commits_nothing_without_a_controller(
    world: World, repository: GitRepository, clock: VirtualClock
) -> None:
    controller = await start_controller(world, standalone=False)
    await start_agent(world, shard="eu")
    hours = gate("hours", "schedule.hour < 12", applies_to=DEV, namespace=POLICIES)
    await world.apply(hours, freeze_gate(), pipeline(repository, environments=[environment(DEV, shard="eu")]))
    await world.settle()
    await world.apply(bundle("app-1"))
    step = f"app-1-{DEV}"
    await world.wait_for(PROMOTION_STEP, step, lambda found: "release freeze" in found["status"].get("message", ""))
    await world.stop(controller)
    clock.skip(timedelta(hours=3))
    await world.delete(POLICY_GATE, freeze_gate()["metadata"]["name"])
    await world.settle()
    status = (await world.get(PROMOTION_STEP, step))["status"]
    assert "gate hours: its answer" in status["message"]
    assert repository.promotions(DEV) == []

    await start_controller(world, standalone=False)
    await world.wait_for(POLICY_GATE, f"{step}-hours", closed)
    await world.settle()
    assert "schedule.hour = 13" in (await world.get(PROMOTION_STEP, step))["status"]["message"]
    assert repository.promotions(DEV) == []


@pytest.mark.virtual_time("waits past the turn of a gate")
async def test_pause_that_ends_past_the_turn_of_a_gate_that_another_term_keeps_open_goes_on(
    world: World, repository: GitRepository
) -> None:
    await start_controller(world, standalone=False)
    await start_agent(world, shard="eu")
    either = gate("either", 'schedule.hour < 12 || bundle.labels.go == "yes"', applies_to=DEV, namespace=POLICIES)
    await world.apply(either, freeze_gate(), pipeline(repository, environments=[environment(DEV, shard="eu")]))
    await world.settle()
    await world.apply(bundle("app-1", labels={"go": "yes"}))
    step = f"app-1-{DEV}"
    await world.wait_for(PROMOTION_STEP, step, lambda found: "release freeze" in found["status"].get("message", ""))
    until = (await world.get(POLICY_GATE, f"{step}-either"))["status"]["nextTransitionAt"]
    await world.live(timedelta(hours=2, minutes=1))
    assert datetime.fromisoformat(until) < world.clock.now()
    assert repository.promotions(DEV) == []
    await world.delete(POLICY_GATE, freeze_gate()["metadata"]["name"])
    await world.until(lambda: repository.promotions(DEV))


@pytest.mark.virtual_time("hours of a review")
async def test_a_review_of_hours_behind_a_gate_that_time_cannot_change_writes_nothing(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    labelled = gate("label", 'bundle.labels.go == "yes"', namespace=POLICIES, recheckInterval="1m")
    await begin(world, labelled, labels={"go": "yes"})
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    await world.settle()
    before = writes(world)
    await world.live(timedelta(hours=2))
    assert writes(world) == before


@pytest.mark.virtual_time("waits for the turns of a day")
async def test_a_gate_that_something_else_keeps_open_goes_on_counting_past_its_turn(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    either = gate("either", 'schedule.hour < 12 || bundle.labels.go == "yes"', namespace=POLICIES, recheckInterval="1h")
    await begin(world, either)
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    await world.client.patch(BUNDLE, "app-1", TEAM, {"metadata": {"labels": {"go": "yes"}}}, kind=PatchType.MERGE)
    await world.live(timedelta(hours=2, minutes=1))
    instance = await world.get(POLICY_GATE, f"app-1-{PROD}-either")
    assert instance["status"]["ready"] is True
    assert datetime.fromisoformat(instance["status"]["nextTransitionAt"]) > world.clock.now()


@pytest.mark.virtual_time("an hour without a controller")
async def test_a_stale_answer_opens_nothing_until_it_is_evaluated_again(
    world: World, agent: ScriptedAgent, clock: VirtualClock
) -> None:
    always = gate("always", "true", namespace=POLICIES, recheckInterval="1m")
    blocking = gate("label", 'bundle.labels.go == "yes"', namespace=POLICIES, recheckInterval="1m")
    first = await start_controller(world, standalone=False)
    await begin(world, always, blocking, labels={"go": "no"})
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-always", ready)
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-label", closed)
    await world.settle()
    await world.stop(first)
    clock.skip(timedelta(hours=1))
    await start_controller(world, standalone=False)
    await world.client.patch(BUNDLE, "app-1", TEAM, {"metadata": {"labels": {"go": "yes"}}}, kind=PatchType.MERGE)
    await world.wait_for(PROMOTION_STEP, f"app-1-{PROD}", lambda _: True, within=timedelta(seconds=1))
    renewed = await world.get(POLICY_GATE, f"app-1-{PROD}-always")
    assert renewed["status"]["lastEvaluatedAt"].startswith("2026-03-03T11:00:00")


async def test_a_gate_with_an_invalid_expression_is_closed_and_its_template_gets_an_event(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await begin(world, gate("broken", "schedule.isWeekend &&", namespace=POLICIES))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    shut = await world.wait_for(POLICY_GATE, f"app-1-{PROD}-broken", closed)
    assert "not valid CEL" in shut["status"]["reason"]
    await world.idle(timedelta(minutes=50))
    assert not await exists(world, f"app-1-{PROD}")
    template = await world.get(POLICY_GATE, "broken", POLICIES)
    assert template["status"]["conditions"][0]["reason"] == "InvalidExpression"
    events = await world.events("InvalidExpression")
    assert [(event["type"], event["regarding"]["name"]) for event in events] == [("Warning", "broken")]


async def test_a_soak_gate_on_a_first_environment_fails_closed(world: World, controller: ControlPlane) -> None:
    await begin(world, gate("soak", "bundle.upstreamSoakMinutes >= 0", applies_to=DEV))
    shut = await world.wait_for(POLICY_GATE, f"app-1-{DEV}-soak", closed)
    assert shut["status"]["reason"] == f"{DEV} has no upstream"


async def test_the_soak_after_several_environments_counts_from_the_last(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    way = pipeline(REPOSITORY, environments=[EU, environment(US, dependsOn=[]), environment(PROD, dependsOn=[EU, US])])
    await world.apply(way, gate("soak", "bundle.upstreamSoakMinutes >= 10"), bundle("app-1"))
    await agent.verify(f"app-1-{EU}")
    await world.live(timedelta(seconds=2))
    verified = await agent.verify(f"app-1-{US}")
    shut = await world.wait_for(POLICY_GATE, f"app-1-{PROD}-soak", closed)
    assert shut["status"]["nextTransitionAt"] == format_time(verified + timedelta(minutes=10))


async def test_a_gate_may_compare_with_what_was_there_before(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]), bundle("app-1", tag="1.0.0"))
    await agent.verify(f"app-1-{DEV}")
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"]["phase"] == "Verified")
    await world.live(timedelta(seconds=1))
    await world.apply(gate("new", "bundle.version != previousBundle.version", applies_to=DEV))
    await world.settle()
    await world.apply(bundle("app-2", tag="1.1.0"))
    opened = await world.wait_for(POLICY_GATE, f"app-2-{DEV}-new", ready)
    assert opened["status"]["reason"] == "bundle.version = 1.1.0, previousBundle.version = 1.0.0"
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-3", tag="1.0.0"))
    shut = await world.wait_for(POLICY_GATE, f"app-3-{DEV}-new", closed)
    assert shut["status"]["reason"] == "bundle.version = 1.0.0, previousBundle.version = 1.0.0"
    await agent.verify(f"app-2-{DEV}")
    await world.wait_for(POLICY_GATE, f"app-3-{DEV}-new", ready)


async def test_an_instance_made_by_hand_stays_closed(world: World, controller: ControlPlane) -> None:
    await world.apply(gate("mine", "true", labels={"kardinal.io/bundle": "app-1"}))
    shut = await world.wait_for(POLICY_GATE, "mine", closed)
    assert "no Graph controls it" in shut["status"]["reason"]
    before = writes(world)
    await world.idle(timedelta(hours=1))
    assert writes(world) == before


async def test_a_freeze_is_never_open(world: World, controller: ControlPlane) -> None:
    freeze = gate("my-app-freeze", "false", applies_to=None, labels={"kardinal.io/type": "freeze"}, message="by alice")
    await world.apply(freeze)
    shut = await world.wait_for(POLICY_GATE, "my-app-freeze", closed)
    assert shut["status"]["reason"] == "by alice"


async def test_a_template_says_once_whether_it_is_valid(world: World, controller: ControlPlane) -> None:
    made = {
        "valid": (gate("valid", "!schedule.isWeekend"), "Valid"),
        "unknown": (gate("unknown", "true", applies_to=of_run("prd")), "Ineffective"),
        "broken": (gate("broken", "metrics.errors < 1"), "InvalidExpression"),
        "scoped": (gate("scoped", "true", labels={"kardinal.io/scope": "org"}), "Ineffective"),
    }
    await world.apply(pipeline(REPOSITORY), *(template for template, _ in made.values()))
    await world.settle()
    for name, (_, reason) in made.items():
        status = (await world.get(POLICY_GATE, name))["status"]
        assert [(entry["type"], entry["reason"]) for entry in status["conditions"]] == [("Valid", reason)]
        assert "ready" not in status
        told = [event for event in await world.events() if event["regarding"]["name"] == name]
        assert [event["reason"] for event in told] == ([] if reason == "Valid" else [reason])
    before = world.audit.writes
    await world.idle(timedelta(hours=1))
    assert world.audit.writes == before


async def test_a_template_is_valid_once_a_pipeline_has_its_environment(world: World, controller: ControlPlane) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[DEV]), gate("g", "true", applies_to=PROD))

    def says(reason: str) -> Any:
        return lambda obj: reason in [entry["reason"] for entry in obj.get("status", {}).get("conditions", ())]

    await world.wait_for(POLICY_GATE, "g", says("Ineffective"))
    await world.apply(pipeline(REPOSITORY))
    await world.wait_for(POLICY_GATE, "g", says("Valid"))


async def test_evaluations_and_blockades_are_counted(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await begin(world, gate("no", "false", applies_to=DEV), gate("yes", "true", applies_to=DEV))
    await world.wait_for(POLICY_GATE, f"app-1-{DEV}-no", closed)
    await world.wait_for(POLICY_GATE, f"app-1-{DEV}-yes", ready)
    await world.settle()
    value = controller.manager.metrics.get_sample_value
    assert value("kardinal_policy_gates_blocked_total", {"gate": "no"}) == 1
    assert value("kardinal_policy_gates_blocked_total", {"gate": "yes"}) is None
    assert (value("kardinal_policy_gates_evaluated_total", {"result": "pass"}) or 0) >= 1
    assert (value("kardinal_policy_gates_evaluated_total", {"result": "fail"}) or 0) >= 1
