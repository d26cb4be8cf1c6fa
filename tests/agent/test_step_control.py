"""A sequence goes the way that its conditions, time limits and attempts say, after a restart too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state
from tests.support.endpoint import answering, serving_endpoint
from tests.support.names import DEV
from tests.support.repository import GitRepository
from tests.support.world import World

LOCAL = ("127.0.0.1:*",)


def sequence(*middle: JsonObject, edit: JsonObject | None = None, before: tuple[JsonObject, ...] = ()) -> Any:
    edits = {"uses": "kustomize-set-image", **(edit or {})}
    after = ({"uses": name} for name in ("git-commit", "git-push", "health-check"))
    return [{"uses": "git-clone"}, *before, edits, *middle, *after]


def states(status: JsonObject) -> dict[str, str]:
    return {step["uses"]: step["state"] for step in status["steps"]}


async def test_a_step_whose_condition_is_false_is_left_out_and_shown(world: World, repository: GitRepository) -> None:
    async with serving_endpoint() as endpoint:
        await start_agent(world, allow_step_hosts=LOCAL)
        await deploy(world)
        config = {"url": endpoint.url}
        skipped = {"uses": "load-tests", "if": 'environment.name == "prod"', "config": config}
        asked = {"uses": "tests", "if": 'bundle.version == "1.1.0"', "config": config}
        await create(world, promotion_step(repository, steps=sequence(skipped, asked)))
        status = await reached(world, "Verified")
    assert [step["uses"] for step in status["steps"] if "startedAt" not in step] == ["load-tests"]
    assert states(status) == {
        "git-clone": "Succeeded",
        "kustomize-set-image": "Succeeded",
        "load-tests": "Skipped",
        "tests": "Succeeded",
        "git-commit": "Succeeded",
        "git-push": "Succeeded",
        "health-check": "Succeeded",
    }
    assert status["steps"][2]["message"] == 'left out: environment.name == "prod" is false'
    assert [heard.json["context"]["step"] for heard in endpoint.heard] == ["tests"]


async def test_nothing_changes_where_every_edit_is_left_out(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, steps=sequence(edit={"if": "1 > 2"})))
    status = await reached(world, "Verified")
    assert states(status)["kustomize-set-image"] == "Skipped"
    assert status["outputs"]["git-push"] == {"changed": False}
    assert repository.promotions(DEV) == []


async def test_an_edit_that_is_left_out_stays_out_when_the_others_land_again(
    world: World, repository: GitRepository
) -> None:
    repository.commit({f"environments/{DEV}/eu/kustomization.yaml": "resources: []\n"})
    await start_agent(world)
    await deploy(world)
    eu = {"uses": "kustomize-set-image", "if": "false", "config": {"path": "eu"}}
    await create(world, promotion_step(repository, steps=sequence(eu)))
    await reached(world, "Verified")
    assert repository.read(f"environments/{DEV}/eu/kustomization.yaml") == "resources: []\n"
    assert len(repository.promotions(DEV)) == 1


async def test_a_condition_without_a_value_ends_the_promotion(world: World, repository: GitRepository) -> None:
    async with serving_endpoint() as endpoint:
        await start_agent(world, allow_step_hosts=LOCAL)
        tests = {"uses": "tests", "config": {"url": endpoint.url}}
        notify = {"uses": "notify", "if": "outputs.tests.ok", "config": {"url": endpoint.url}}
        await create(world, promotion_step(repository, steps=[tests, notify, _PROOF]))
        status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "ExpressionError"
    assert status["message"].startswith("notify: if: outputs.tests.ok is not set. ")
    assert len(endpoint.heard) == 1


async def test_outputs_choose_what_a_later_edit_does_and_it_lands_as_it_was_planned(
    world: World, repository: GitRepository
) -> None:
    repository.commit({f"environments/{DEV}/eu/kustomization.yaml": "resources: []\n"})
    picked = answering(body={"success": True, "outputs": {"overlay": "eu"}})
    async with serving_endpoint(picked) as endpoint:
        await start_agent(world, allow_step_hosts=LOCAL)
        await deploy(world)
        pick = {"uses": "choose-overlay", "as": "choice", "config": {"url": endpoint.url}}
        edit = {"config": {"path": "${outputs.choice.overlay}"}}
        await create(
            world, promotion_step(repository, update={"verifyEffect": "off"}, steps=sequence(before=(pick,), edit=edit))
        )
        status = await reached(world, "Verified")
    assert status["outputs"]["choice"] == {"overlay": "eu"}
    assert "1.1.0" in repository.read(f"environments/{DEV}/eu/kustomization.yaml")
    assert "1.1.0" not in repository.read(f"environments/{DEV}/kustomization.yaml")


async def test_an_output_that_leads_out_of_the_environment_is_refused(world: World, repository: GitRepository) -> None:
    evil = answering(body={"success": True, "outputs": {"overlay": "../prod"}})
    async with serving_endpoint(evil) as endpoint:
        await start_agent(world, allow_step_hosts=LOCAL)
        pick = {"uses": "choose-overlay", "as": "choice", "config": {"url": endpoint.url}}
        edit = {"config": {"path": "${outputs.choice.overlay}"}}
        await create(world, promotion_step(repository, steps=sequence(before=(pick,), edit=edit)))
        status = await reached(world, "Failed")
    assert status["conditions"][0]["reason"] == "InvalidConfig"
    assert "without .. segments" in status["message"]
    assert len(endpoint.heard) == 1


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        (answering(body={"success": False, "message": "flaky"}), {}),
        (answering(503), {"retry": {"attempts": 2}}),
        (answering(202, {}, Location="/jobs/1"), {"timeout": "1m"}),
    ],
    ids=["says no", "attempts are used up", "time is over"],
)
@pytest.mark.virtual_time("time limits and back-off")
async def test_a_step_that_may_fail_is_shown_as_failed_and_the_promotion_goes_on(
    world: World, repository: GitRepository, answer: Any, step: JsonObject
) -> None:
    async with serving_endpoint(answer) as endpoint:
        await start_agent(world, allow_step_hosts=LOCAL)
        await deploy(world)
        tests = {"uses": "tests", "continueOnError": True, "config": {"url": endpoint.url}, **step}
        told = {"uses": "kustomize-set-image", "if": "!has(outputs.tests)"}
        await create(world, promotion_step(repository, steps=sequence(before=(tests,), edit=told)))
        status = await reached(world, "Verified")
    assert states(status)["tests"] == "Failed"
    assert states(status)["kustomize-set-image"] == "Succeeded"
    assert "retry" not in status
    assert len(repository.promotions(DEV)) == 1


@pytest.mark.virtual_time("time limits and back-off")
async def test_a_review_has_a_time_limit_that_a_restart_does_not_renew(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    agent = await start_agent(world)
    names = ("git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pr")
    steps = [*({"uses": name} for name in names), {"uses": "wait-for-merge", "timeout": "20m"}, _PROOF]
    await create(world, promotion_step(repository, approval="pr-review", steps=steps))
    await reached(world, "WaitingForMerge")
    await world.settle()
    deadline = (await state(world))["steps"][5]["deadline"]
    await world.live(timedelta(minutes=10))
    await world.stop(agent)
    await start_agent(world)
    await world.settle()
    assert (await state(world))["steps"][5]["deadline"] == deadline
    status = await reached(world, "Failed", within=timedelta(minutes=10, seconds=1))
    assert status["conditions"][0]["reason"] == "StepTimeout"
    assert status["message"].startswith("wait-for-merge: not done within 20m: waits for ")


@pytest.mark.virtual_time("time limits and back-off")
async def test_a_review_in_time_is_not_late(world: World, repository: GitRepository, reviewer: PullRequests) -> None:
    await start_agent(world)
    await deploy(world)
    names = ("git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pr")
    steps = [*({"uses": name} for name in names), {"uses": "wait-for-merge", "timeout": "2h"}, _PROOF]
    await create(world, promotion_step(repository, approval="pr-review", steps=steps))
    await reached(world, "WaitingForMerge")
    await reviewer.merge(1, by="alice")
    status = await reached(world, "Verified")
    assert status["evidence"]["approvedBy"] == ["alice"]


@pytest.mark.virtual_time("time limits and back-off")
async def test_the_attempts_of_a_built_in_step_are_counted(world: World, tmp_path: Any) -> None:
    await start_agent(world)
    made = promotion_step(f"file://{tmp_path}/missing.git")
    made["spec"]["steps"][0]["retry"] = {"attempts": 3}
    await create(world, made)
    status = await reached(world, "Failed")
    assert status["message"].endswith("(attempt 3 of 3)")
    assert status["message"].startswith("git-clone: git.url: ")


@pytest.mark.virtual_time("time limits and back-off")
async def test_without_a_review_a_person_may_be_waited_for(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    names = ("git-clone", "kustomize-set-image", "git-commit", "git-push", "open-pr", "wait-for-merge", "health-check")
    await create(world, promotion_step(repository, pr=True, steps=[{"uses": name} for name in names]))
    await reached(world, "WaitingForMerge")
    await world.live(timedelta(minutes=1))
    assert [found.state for found in await reviewer.list()] == ["open"]
    await reviewer.merge(1, by="alice")
    await reached(world, "Verified")


_PROOF = {"uses": "health-check"}
