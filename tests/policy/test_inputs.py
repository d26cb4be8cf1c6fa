"""Variables of gates about environments: who can write them, and what a gate says of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import GRAPH, JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.policy.evaluate import fault
from kardinal_controller.program import ControlPlane
from tests.agent.promotion_steps import freeze_gate, start_agent
from tests.bundles.scripted_agent import ScriptedAgent
from tests.support.clock import VirtualClock
from tests.support.names import DEV, POLICIES, PROD, STAGING, TEAM
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.programs import start_controller
from tests.support.repository import GitRepository
from tests.support.world import World

REPOSITORY = "file:///repo"
INSTANCE = f"app-1-{PROD}-g"


def says(reason: str, *, ready: bool = False) -> Any:
    def holds(obj: JsonObject) -> bool:
        status = obj.get("status", {})
        return status.get("ready") is ready and reason in status.get("reason", "")

    return holds


async def reach(world: World, agent: ScriptedAgent, expression: str, *others: JsonObject, **spec: Any) -> None:
    """Bring app-1 before the gate `g` of prod."""
    await world.apply(pipeline(REPOSITORY), *others, gate("g", expression, **spec))
    await world.settle()
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")


async def test_gate_reads_what_an_environment_before_it_runs(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    expression = f'upstream["{STAGING}"].version == bundle.version && upstream["{STAGING}"].healthy'
    await reach(world, agent, expression)
    await world.wait_for(POLICY_GATE, INSTANCE, says("version = 1.1.0", ready=True))
    await agent.step(f"app-1-{STAGING}", healthy=False)
    await world.wait_for(POLICY_GATE, INSTANCE, says("healthy = false"))


async def test_version_of_an_environment_changes_when_another_bundle_is_verified_there(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, f'upstream["{STAGING}"].version == bundle.version')
    await world.wait_for(POLICY_GATE, INSTANCE, says("version = 1.1.0", ready=True))
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="2.0.0", intent={"target": STAGING}))
    await agent.verify(f"app-2-{DEV}")
    await agent.land(f"app-2-{STAGING}")
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"app-2 is not Verified in {STAGING}"))


async def test_environment_that_does_not_come_before_has_no_values(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, f'upstream["{PROD}"].version == "1.1.0"')
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"{PROD} does not come before {PROD}"))


async def test_contract_holds_until_another_pipeline_runs_the_version(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    payments = pipeline("file:///payments", name="payments", environments=[DEV])
    expression = f'semver(contracts["payments"]["{DEV}"].version).compareTo(semver("2.0.0")) >= 0'
    await reach(world, agent, expression, payments)
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"Pipeline payments: nothing has been promoted to {DEV} yet"))
    await world.apply(bundle("pay-1", pipeline="payments", tag="1.9.0"))
    await agent.verify(f"pay-1-{DEV}")
    await world.wait_for(POLICY_GATE, INSTANCE, says("version = 1.9.0"))
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("pay-2", pipeline="payments", tag="2.1.0"))
    await agent.verify(f"pay-2-{DEV}")
    await world.wait_for(POLICY_GATE, INSTANCE, says("version = 2.1.0", ready=True))


async def test_bundle_with_forged_labels_and_status_meets_no_contract(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    payments = pipeline("file:///payments", name="payments", environments=[DEV])
    expression = f'contracts["payments"]["{DEV}"].version == "2.0.0"'
    await reach(world, agent, expression, payments)
    forged = bundle("forged", pipeline="payments", tag="2.0.0", labels={"kardinal.io/environment": DEV})
    moment = "2026-03-03T09:00:00Z"
    entry = {"state": "Verified", "promotedAt": moment, "verifiedAt": moment, "healthy": True}
    forged["status"] = {"pipeline": "payments", "graphRef": "forged", "environments": {DEV: entry}}
    await world.apply(forged)
    await world.settle()
    await world.idle(timedelta(minutes=10))
    shut = await world.get(POLICY_GATE, INSTANCE)
    assert shut["status"]["ready"] is False
    assert "nothing has been promoted" in shut["status"]["reason"]


async def test_bundle_of_another_namespace_meets_no_contract(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, f'contracts["payments"]["{DEV}"].version == "1.0.0"')
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"Pipeline payments: namespace {TEAM} has none of this name"))


async def test_gate_reads_what_the_delegate_of_the_environment_before_reports(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, 'delegation.status == "Healthy"')
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"no delegate reports of {STAGING}"))
    await agent.step(f"app-1-{STAGING}", delegatedTo="argoRollouts", delegatedStatus="Healthy")
    await world.wait_for(POLICY_GATE, INSTANCE, says("delegation.status = Healthy", ready=True))


async def test_step_that_no_graph_made_reports_no_delegate(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, 'delegation.status == "Healthy"')
    await world.wait_for(POLICY_GATE, INSTANCE, says(f"no delegate reports of {STAGING}"))
    spec = (await world.get(PROMOTION_STEP, f"app-1-{STAGING}"))["spec"]
    forged = {"apiVersion": "kardinal.io/v1alpha1", "kind": "PromotionStep", "spec": spec}
    await world.apply(forged | {"metadata": {"name": "forged", "namespace": TEAM, "labels": {"kardinal.io/x": "y"}}})
    await agent.step("forged", delegatedStatus="Healthy")
    await world.settle()
    assert (await world.get(POLICY_GATE, INSTANCE))["status"]["ready"] is False


async def reach_second(world: World, agent: ScriptedAgent) -> None:
    """Bring app-2 before a gate of prod that reads the drift there; app-1 runs in prod."""
    await world.apply(pipeline(REPOSITORY))
    await world.settle()
    await world.apply(bundle("app-1"))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}", f"app-1-{PROD}")
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"]["phase"] == "Verified")
    await world.live(timedelta(seconds=1))
    await world.apply(gate("g", "!targetDrift.unreconciled"))
    await world.settle()
    await world.apply(bundle("app-2", tag="2.0.0"))
    await agent.verify(f"app-2-{DEV}", f"app-2-{STAGING}")


async def note_drift(world: World, agent: ScriptedAgent, unreconciled: bool | None, message: str = "seen") -> None:
    drift = {"unreconciled": unreconciled, "message": message, "seenAt": format_time(world.clock.now())}
    await agent.step(f"app-1-{PROD}", targetDrift=drift)


SECOND = f"app-2-{PROD}-g"


async def test_gate_reads_whether_its_environment_has_something_left_to_apply(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach_second(world, agent)
    await world.wait_for(POLICY_GATE, SECOND, says(f"no agent has looked at {PROD} yet"))
    await note_drift(world, agent, None, "Application argocd/app is suspended")
    await world.wait_for(POLICY_GATE, SECOND, says("Application argocd/app is suspended"))
    await note_drift(world, agent, True)
    await world.wait_for(POLICY_GATE, SECOND, says("targetDrift.unreconciled = true"))
    await note_drift(world, agent, False)
    await world.wait_for(POLICY_GATE, SECOND, says("targetDrift.unreconciled = false", ready=True))
    # Its own commit is no drift.
    await agent.land(f"app-2-{PROD}")
    await note_drift(world, agent, True)
    await world.settle()
    assert (await world.get(POLICY_GATE, SECOND))["status"]["ready"] is True


async def test_environment_without_a_promotion_has_no_drift(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, "!targetDrift.unreconciled")
    await world.wait_for(POLICY_GATE, INSTANCE, says("nothing has been promoted"))


@pytest.mark.virtual_time("minutes without an agent")
async def test_drift_that_no_agent_renews_closes_the_gate(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach_second(world, agent)
    await note_drift(world, agent, False)
    await world.wait_for(POLICY_GATE, SECOND, says("targetDrift.unreconciled = false", ready=True))
    await world.live(timedelta(minutes=20))
    await world.wait_for(POLICY_GATE, SECOND, says(f"no agent has looked at {PROD} since "))


async def test_step_that_no_graph_made_tells_no_drift(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach_second(world, agent)
    await note_drift(world, agent, False)
    await world.wait_for(POLICY_GATE, SECOND, says("targetDrift.unreconciled = false", ready=True))
    step = await world.get(PROMOTION_STEP, f"app-1-{PROD}")
    await world.delete(GRAPH, "app-1")
    await world.wait_for(POLICY_GATE, SECOND, lambda _: True)
    metadata = {"name": step["metadata"]["name"], "namespace": TEAM}
    await world.apply({**step, "metadata": metadata, "status": step["status"]})
    await note_drift(world, agent, False)
    await world.settle()
    assert (await world.get(POLICY_GATE, SECOND))["status"]["ready"] is False


@pytest.mark.virtual_time("minutes of two intervals")
async def test_answer_about_other_environments_is_renewed_while_effects_lie_ahead(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await reach(world, agent, f'upstream["{STAGING}"].version == "1.1.0"', recheckInterval="5m")
    await agent.step(f"app-1-{PROD}", state="WaitingForMerge")
    seen = []
    for _ in range(3):
        status = (await world.get(POLICY_GATE, INSTANCE))["status"]
        seen.append(status["nextTransitionAt"])
        await world.live(timedelta(minutes=5))
    assert len(set(seen)) == 3
    await agent.verify(f"app-1-{PROD}")
    await world.settle()
    last = await world.get(POLICY_GATE, INSTANCE)
    await world.live(timedelta(hours=1))
    assert await world.get(POLICY_GATE, INSTANCE) == last


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ('contracts[bundle.labels.of]["prod"].version == "1"', "as literals"),
        ("contracts.size() == 1", "as literals"),
        ('contracts["a"]["b"].digest == "x"', "there is no attribute contracts.a.b.digest; did you mean contracts.a.b"),
        ('upstream["a"].versoin == "x"', "did you mean upstream.a.version"),
        ('upstream["a"].version == "x" && contracts["a"]["b"].version == "x"', None),
    ],
)
def test_unknown_field_of_an_input_is_a_fault(expression: str, wrong: str | None) -> None:
    found = fault(expression)
    assert found is None if wrong is None else found is not None and wrong in found


async def test_skip_permission_is_not_opened_by_the_absence_of_an_input(world: World, controller: ControlPlane) -> None:
    permission = gate(
        "may-skip",
        "!has(upstream.dev)",
        applies_to=STAGING,
        namespace=POLICIES,
        labels={"kardinal.io/type": "skip-permission"},
    )
    hours = gate("hours", "true", applies_to=STAGING, namespace=POLICIES)
    await world.apply(pipeline(REPOSITORY), permission, hours)
    await world.settle()
    await world.apply(bundle("app-1", intent={"skip": [STAGING]}))
    denied = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "SkipDenied")
    assert "upstream is not read here" in str(denied["status"]["conditions"])


@pytest.mark.virtual_time("minutes without a controller")
async def test_answer_about_another_environment_ends_without_a_controller(
    world: World, repository: GitRepository, clock: VirtualClock
) -> None:
    controller = await start_controller(world, standalone=False)
    await start_agent(world, shard="eu")
    proven = gate("g", f'upstream["{DEV}"].version == "1.1.0"', applies_to=STAGING, recheckInterval="5m")
    environments = [environment(DEV), environment(STAGING, shard="eu")]
    await world.apply(proven, freeze_gate(), pipeline(repository, environments=environments))
    await world.settle()
    await world.apply(bundle("app-1"))
    await ScriptedAgent(world).verify(f"app-1-{DEV}")
    step = f"app-1-{STAGING}"
    await world.wait_for(PROMOTION_STEP, step, lambda found: "freeze" in found["status"].get("message", ""))
    await world.stop(controller)
    clock.skip(timedelta(minutes=11))
    await world.delete(POLICY_GATE, freeze_gate()["metadata"]["name"])
    await world.wait_for(
        PROMOTION_STEP, step, lambda found: "its answer counted until" in found["status"].get("message", "")
    )
    await world.idle(timedelta(minutes=30))
    assert repository.promotions(STAGING) == []
    await start_controller(world, standalone=False)
    await world.until(lambda: repository.promotions(STAGING))
