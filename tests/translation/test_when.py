"""Conditional environments: what a Bundle leaves out, what is said of it, and who may leave out what is protected."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import GRAPH, JsonObject
from kardinal.promotion.api import Bundle, Pipeline
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal.promotion.translation.conditional import left_out, when_fault
from kardinal.promotion.translation.errors import InvalidSpec
from kardinal.promotion.translation.route import find_route
from kardinal.promotion.translation.topology import read_topology
from kardinal_controller.program import ControlPlane
from tests.bundles.scripted_agent import ScriptedAgent, agent, controller
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.world import World

__all__ = ["agent", "cli", "controller"]

REPOSITORY = "file:///repo"
WAY: list[str | JsonObject] = [DEV, environment(STAGING, when='bundle.labels.tier == "gold"'), PROD]


def route(when: str, **fields: Any) -> Any:
    way: list[str | JsonObject] = [DEV, environment(STAGING, when=when), PROD]
    stored = pipeline(REPOSITORY, environments=way)
    return find_route(Pipeline.model_validate(stored), Bundle.model_validate(bundle("app-1", **fields)))


def test_environment_whose_condition_is_false_is_passed_over() -> None:
    found = route('bundle.type == "config"')
    assert found.upstreams == {DEV: (), PROD: (DEV,)}
    assert (found.skipped, found.left_out) == ((STAGING,), {STAGING: "bundle.type = image"})


def test_environment_whose_condition_is_true_is_promoted_to() -> None:
    assert list(route('bundle.labels.tier == "gold"', labels={"tier": "gold"}).upstreams) == [DEV, STAGING, PROD]


def test_condition_without_an_answer_leaves_nothing_out() -> None:
    with pytest.raises(InvalidSpec, match=r"bundle\.labels\.tier is not set") as caught:
        route('bundle.labels.tier == "gold"')
    assert [problem.reason for problem in caught.value.problems] == ["WhenUndecided"]


def test_conditions_that_are_too_long_together_are_not_read() -> None:
    some: list[str | JsonObject] = [
        environment(f"e{index}", when=f"bundle.name == '{'x' * 450}{index}'") for index in range(10)
    ]
    bundle_of_today = Bundle.model_validate(bundle("app-1"))

    def names(environments: list[str | JsonObject]) -> set[str]:
        found = Pipeline.model_validate(pipeline(REPOSITORY, environments=environments))
        return set(left_out(found.spec.environments, bundle_of_today)[0])

    assert names(some[:2]) == {"e0", "e1"}
    assert names(some) == set()


def test_target_that_is_left_out_is_a_mistake() -> None:
    with pytest.raises(InvalidSpec, match="its condition when is false"):
        route("false", intent={"target": STAGING})


def test_rollback_goes_to_an_environment_whatever_its_condition() -> None:
    identity = {"name": "app-0", "uid": "u"}
    intent = {"rollback": {"environments": [STAGING], "of": identity, "restores": identity}}
    assert list(route("false", intent=intent).upstreams) == [STAGING]


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ('bundle.provenance.author == "ci" || has(bundle.labels.x)', None),
        ("bundle.version ==", "not valid CEL"),
        ("schedule.hour > 3", "it reads schedule.hour"),
        ("bundle.upstreamSoakMinutes > 3", "it reads bundle.upstreamSoakMinutes"),
        ("bundle.attested.token == 'ci'", "it reads bundle.attested.token"),
        ("bundle == bundle", "it reads bundle;"),
        ("now() > timestamp(bundle.labels.at)", "it reads the time"),
        ('bundle.provenance.autor == "x"', "there is no attribute"),
    ],
)
def test_condition_reads_the_bundle_alone(expression: str, wrong: str | None) -> None:
    found = when_fault(expression)
    assert found is None if wrong is None else wrong in (found or "")


async def test_pipeline_with_a_faulty_condition_is_refused(world: World, controller: ControlPlane) -> None:
    await world.apply(pipeline(REPOSITORY, environments=[environment(DEV, when="schedule.hour > 3")]))

    def refused(obj: JsonObject) -> bool:
        return "InvalidWhen" in str(obj.get("status", {}).get("conditions"))

    await world.wait_for(PIPELINE, "my-app", refused)


async def test_status_and_explain_say_which_values_left_an_environment_out(
    world: World, controller: ControlPlane, agent: ScriptedAgent, cli: InProcess
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=WAY))
    await world.settle()
    await world.apply(bundle("app-1", labels={"tier": "tin"}))
    await agent.verify(f"app-1-{DEV}", f"app-1-{PROD}")
    done = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    message = "its condition is false: bundle.labels.tier = tin"
    assert done["status"]["environments"][STAGING] == {"state": "Skipped", "reason": "WhenFalse", "message": message}
    assert list(read_topology(await world.get(GRAPH, "app-1")).steps) == [DEV, PROD]
    explained = await cli("explain", "my-app", "--env", STAGING)
    assert f"RESULT: SKIPPED: {message}" in explained
    assert message in await cli("status", "my-app")
    # Who changes the label afterwards does not change what was decided.
    before = await world.get(BUNDLE, "app-1")
    await world.apply(bundle("app-1", labels={"tier": "gold"}))
    await world.settle()
    after = await world.get(BUNDLE, "app-1")
    assert after["status"]["environments"] == before["status"]["environments"]


@pytest.mark.parametrize("allowed", [False, True])
async def test_condition_that_is_false_needs_a_permission_where_an_org_gate_binds(
    world: World, controller: ControlPlane, cli: InProcess, allowed: bool
) -> None:
    labels = {"kardinal.io/type": "skip-permission"}
    permission = gate("skips", str(allowed).lower(), applies_to=STAGING, namespace=POLICIES, labels=labels)
    held = gate("held", "true", applies_to=STAGING, namespace=POLICIES)
    await world.apply(pipeline(REPOSITORY, environments=WAY), permission, held)
    await world.settle()
    await world.apply(bundle("app-1", labels={"tier": "tin"}))
    phase = "Promoting" if allowed else "SkipDenied"
    await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == phase)
    assert "SKIPPED: its condition is false: bundle.labels.tier = tin" in await cli(
        "explain", "my-app", "--env", STAGING
    )


async def test_newer_bundle_waits_for_no_environment_that_an_older_one_left_out(
    world: World, controller: ControlPlane, agent: ScriptedAgent
) -> None:
    await world.apply(pipeline(REPOSITORY, environments=WAY, promotionPolicy="queue"))
    await world.settle()
    await world.apply(bundle("app-1", labels={"tier": "tin"}))
    await agent.verify(f"app-1-{DEV}")
    await agent.land(f"app-1-{PROD}")
    await world.live(timedelta(seconds=1))
    await world.apply(bundle("app-2", tag="2.0.0", labels={"tier": "gold"}))
    await agent.verify(f"app-2-{DEV}")
    await agent.prepare(f"app-2-{STAGING}")
    admitted = await world.wait_for(
        BUNDLE, "app-2", lambda obj: "admittedAt" in obj["status"]["environments"].get(STAGING, {})
    )
    assert admitted["status"]["phase"] == "Promoting"
