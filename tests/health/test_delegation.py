"""A delivery controller that is waited for beside the proof: what both say together, and what is noted of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kardinal.kube import PatchType
from kardinal.objects import REPLICA_SET, JsonObject
from kardinal_agent.health import State, Verdict
from kardinal_agent.health.argo_rollouts import ROLLOUT, ArgoRollouts
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.delegation import Delegated, delegated, together
from kardinal_agent.health.flagger import Flagger
from tests.agent.promotion_steps import create, promotion_step, reached, start_agent, state
from tests.health.rollout_cases import canary, rollout
from tests.health.served_tools import application, put, serve
from tests.health.tools import change, objects_of
from tests.health.tools import promotion_step as judged_step
from tests.support.names import DEV, TEAM
from tests.support.repository import APPLICATION as APP
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

EARLY = datetime(2026, 3, 3, 10, tzinfo=UTC)
LATE = datetime(2026, 3, 3, 11, tzinfo=UTC)
HASH = "789746c88d"
ROLLOUTS = {"delegate": "argoRollouts"}
ROLLOUT_STEP = judged_step({"type": "argocd", "argoRollouts": {"name": "app", "namespace": "prod"}})
CANARY_STEP = judged_step({"type": "argocd", "flagger": {"name": "app", "namespace": "prod"}})


@pytest.mark.parametrize("proof", ["healthy", "progressing", "failed"])
@pytest.mark.parametrize("delegate", ["healthy", "progressing", "failed"])
def test_both_must_be_healthy_and_either_may_fail(proof: State, delegate: State) -> None:
    found = together(Verdict(state=proof, message="proof"), Verdict(state=delegate, message="delegate"))
    ranks: list[State] = ["healthy", "progressing", "failed"]
    assert found.state == max(proof, delegate, key=ranks.index)
    if found.state == "failed":
        assert found.message == ("delegate" if delegate == "failed" else "proof")


def test_waits_of_both_delegates_are_joined() -> None:
    proof = Verdict(state="progressing", message="p", details="p: says", since=EARLY)
    delegate = Verdict(state="progressing", message="d", since=LATE, negative=True)
    found = together(proof, delegate)
    assert (found.message, found.details, found.since, found.negative) == ("p; d", "p: says; d", LATE, True)
    plain = together(Verdict(state="progressing", message="p"), Verdict(state="progressing", message="d"))
    assert plain.details == ""


@pytest.mark.parametrize("phase", ["Healthy", "Paused", "Degraded", "Progressing"])
def test_report_of_a_rollout_is_noted(phase: str) -> None:
    found = rollout()
    change("status", "phase", to=phase)(found)
    assert delegated(ROLLOUT_STEP, ArgoRollouts(), objects_of(found)) == Delegated("argoRollouts", phase)


@pytest.mark.parametrize("phase", ["", None, ["Healthy"], "Succeeded", "token=abc", "x" * 10_000])
def test_words_that_are_not_the_controllers_are_not_repeated(phase: object) -> None:
    """The text is chosen by those who may write the status of such an object."""
    found = rollout()
    change("status", "phase", to=phase)(found)
    assert delegated(ROLLOUT_STEP, ArgoRollouts(), objects_of(found)) == Delegated("argoRollouts", "Unknown")


def test_report_of_a_canary_or_its_absence_is_noted() -> None:
    assert delegated(CANARY_STEP, Flagger(), objects_of(canary())) == Delegated("flagger", "Succeeded")
    assert delegated(CANARY_STEP, Flagger(), objects_of()) == Delegated("flagger", "NotFound")


async def put_replica_set(world: World, owner: JsonObject, container: JsonObject) -> None:
    """Have the ReplicaSet of the only version of a Rollout, which runs no pods."""
    labels = {"rollouts-pod-template-hash": HASH}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    reference |= {field: owner["metadata"][field] for field in ("name", "uid")}
    made = {
        "apiVersion": REPLICA_SET.api_version,
        "kind": REPLICA_SET.kind,
        "metadata": {"name": f"{APP}-{HASH}", "namespace": DEV, "labels": labels, "ownerReferences": [reference]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
    await world.client.apply(REPLICA_SET, made, field_manager="tool", force=True)


async def put_rollout(world: World, phase: str, **status: object) -> None:
    """Have a Rollout of the promoted image, which reports a phase."""
    container = {"name": "app", "image": f"{IMAGE}:1.1.0"}
    strategy: JsonObject = {"canary": {"steps": [{"pause": {}}]}}
    template = {"spec": {"containers": [container]}}
    made = await put(world, ROLLOUT, DEV, spec={"template": template, "strategy": strategy})
    await put_replica_set(world, made, container)
    reported = {"phase": phase, "observedGeneration": "1", "currentPodHash": HASH, "stableRS": HASH}
    body = {"status": {**reported, **status}}
    await world.client.patch(ROLLOUT, APP, DEV, body, kind=PatchType.MERGE, subresource="status")
    await world.settle()


async def test_a_paused_delegate_is_waited_for_until_it_is_promoted(world: World, repository: GitRepository) -> None:
    await serve(world, APPLICATION)
    await serve(world, ROLLOUT, status=True)
    named = {"argocd": {"name": APP, "namespace": TEAM}, "argoRollouts": {"name": APP, "namespace": DEV}}
    await start_agent(world)
    await create(world, promotion_step(repository, health={"type": "argocd", **named}, delivery=ROLLOUTS))
    status = await reached(world, "HealthChecking")
    assert (status["delegatedTo"], status["delegatedStatus"]) == ("argoRollouts", "NotFound")
    await put(world, APPLICATION, TEAM, **application(repository, status["commit"]))
    await put_rollout(world, "Paused", pauseConditions=[{"reason": "CanaryPauseStep"}], currentStepIndex=0)
    status = await state(world)
    assert (status["state"], status["delegatedStatus"]) == ("HealthChecking", "Paused")
    assert "a person must promote it" in status["message"]
    await put_rollout(world, "Healthy")
    status = await reached(world, "Verified")
    assert (status["delegatedTo"], status["delegatedStatus"]) == ("argoRollouts", "Healthy")
    assert status["message"].startswith(f"Application {TEAM}/{APP} is Synced")


async def test_without_a_gitops_tool_the_delegate_is_the_proof(world: World, repository: GitRepository) -> None:
    await serve(world, ROLLOUT, status=True)
    step = promotion_step(repository, delivery=ROLLOUTS)
    step["spec"]["health"] = {"timeout": "10m", "argoRollouts": {"name": APP, "namespace": DEV}}
    await start_agent(world)
    await create(world, step)
    status = await reached(world, "HealthChecking")
    assert status["health"] == {"type": "argoRollouts"}
    await put_rollout(world, "Healthy")
    status = await reached(world, "Verified")
    assert status["message"] == f"Rollout {DEV}/{APP} runs {IMAGE}:1.1.0"
    assert status["delegatedStatus"] == "Healthy"
    assert await world.events("HealthNotDetected") == []
