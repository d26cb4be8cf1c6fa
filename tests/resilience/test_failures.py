"""Promotions that cannot succeed: they end, say why where their author looks, and nothing comes after them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal_controller.program import ControlPlane
from tests.support.names import DEV, EU, POLICIES, PROD, STAGING, US, of_run
from tests.support.objects import bundle, environment, gate, pipeline
from tests.support.repository import GitRepository
from tests.support.reviewer import close_pull_request
from tests.support.world import World

JsonObject = dict[str, Any]
Reached = Callable[..., Awaitable[JsonObject]]
Deployed = Callable[[str], Awaitable[None]]

AFTER = of_run("after")


def _condition(obj: JsonObject, type_: str) -> JsonObject:
    (condition,) = [entry for entry in obj["status"]["conditions"] if entry["type"] == type_]
    found: JsonObject = condition
    return found


async def test_a_pull_request_closed_without_merge_fails_the_promotion(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached, state: Reached
) -> None:
    await world.apply(pipeline(repository, environments=[environment(PROD, approval="pr-review"), AFTER]), bundle("b"))
    step = await state("b", PROD, "WaitingForMerge")
    head = repository.head()
    await close_pull_request(world, repository, step["status"]["pullRequest"]["number"])
    failed = await phase("b", "Failed")
    assert "without being merged" in (await state("b", PROD, "Failed"))["status"]["message"]
    assert PROD in _condition(failed, "Ready")["message"]
    assert await world.find(PROMOTION_STEP, f"b-{AFTER}") is None
    assert repository.head() == head


async def test_deployment_that_never_becomes_healthy_fails_after_its_timeout(
    world: World, repository: GitRepository, running: ControlPlane, state: Reached
) -> None:
    await world.apply(
        pipeline(repository, environments=[environment(DEV, health={"timeout": "3s"}), STAGING]),
        bundle("b", tag="2-broken"),
    )
    checking = await state("b", DEV, "HealthChecking")
    await world.wait_for(BUNDLE, "b", lambda obj: obj["status"]["phase"] == "Failed", within=timedelta(seconds=5))
    assert world.clock.now() >= datetime.fromisoformat(checking["status"]["healthDeadline"])
    failed = await state("b", DEV, "Failed")
    assert failed["status"]["healthDeadline"] == checking["status"]["healthDeadline"]
    assert "3s" in failed["status"]["message"]
    assert await world.find(PROMOTION_STEP, f"b-{STAGING}") is None
    assert repository.promotions(STAGING) == []


async def test_without_anything_that_deploys_the_step_says_what_it_waits_for(
    world: World, repository: GitRepository, controller_alone: ControlPlane, state: Reached
) -> None:
    await world.apply(pipeline(repository), bundle("b"))
    step = await state("b", DEV, "HealthChecking")
    await world.idle(timedelta(minutes=5))
    step = await world.get(PROMOTION_STEP, f"b-{DEV}")
    assert step["status"]["state"] == "HealthChecking"
    assert f"no workload of namespace {DEV} " in step["status"]["message"]


MISTAKES: dict[str, tuple[JsonObject, JsonObject, str]] = {
    "an image reference that is none": (
        pipeline("REPOSITORY"),
        bundle("b", image="ghcr.io/acme/UPPER"),
        "spec.artifacts.images[0]",
    ),
    "an environment that is not there": (pipeline("REPOSITORY"), bundle("b", intent={"target": of_run("prdo")}), PROD),
    "environments in a circle": (
        pipeline("REPOSITORY", environments=[environment(EU, dependsOn=[PROD]), US, environment(PROD, dependsOn=[US])]),
        bundle("b"),
        f"{EU} -> ",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_bundle_that_cannot_be_translated_says_so_and_touches_nothing(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached, mistake: str
) -> None:
    wrong, promoted, words = MISTAKES[mistake]
    wrong = wrong | {"spec": wrong["spec"] | {"git": {"url": repository.url, "provider": "local"}}}
    head = repository.head()
    await world.apply(wrong, promoted)
    failed = await phase("b", "Failed")
    assert _condition(failed, "InvalidSpec")["status"] == "True"
    assert words in _condition(failed, "InvalidSpec")["message"]
    assert await world.objects(GRAPH) == []
    assert repository.head() == head


async def test_a_pipeline_that_cannot_be_translated_says_so_itself(
    world: World, repository: GitRepository, running: ControlPlane
) -> None:
    circle = [environment(EU, dependsOn=[US]), environment(US, dependsOn=[EU])]
    await world.apply(pipeline(repository, environments=circle))
    stored = await world.wait_for(PIPELINE, "my-app", lambda obj: "conditions" in obj.get("status", {}))
    ready = _condition(stored, "Ready")
    assert ready["status"] == "False"
    assert "circle" in ready["message"]


async def test_a_missing_overlay_fails_the_step_naming_the_path(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached
) -> None:
    head = repository.head()
    await world.apply(pipeline(repository, environments=[environment(DEV, path="environments/nowhere")]), bundle("b"))
    await phase("b", "Failed")
    step = await world.get(PROMOTION_STEP, f"b-{DEV}")
    assert "environments/nowhere" in step["status"]["message"]
    assert repository.head() == head


async def test_an_unreachable_repository_is_retried_with_its_error_in_sight(
    world: World, repository: GitRepository, running: ControlPlane, state: Reached, phase: Reached
) -> None:
    hidden = repository.path.with_name("away.git")
    await world.apply(pipeline(repository, environments=[DEV]))
    repository.path.rename(hidden)
    await world.apply(bundle("b"))
    step = await world.wait_for(PROMOTION_STEP, f"b-{DEV}", lambda obj: "retry" in obj.get("status", {}))
    assert str(repository.path) in step["status"]["retry"]["lastError"]
    assert step["status"]["state"] != "Failed"
    hidden.rename(repository.path)
    await phase("b", "Verified")
    assert len(repository.promotions(DEV)) == 1


async def test_a_gate_whose_expression_is_broken_holds_prod_and_says_so(
    world: World, repository: GitRepository, controller_alone: ControlPlane, deployed: Deployed, state: Reached
) -> None:
    await world.apply(
        pipeline(repository, environments=[DEV, PROD]),
        gate("broken", "bundle.version ==", namespace=POLICIES),
        bundle("b"),
    )
    await deployed(DEV)
    await state("b", DEV, "Verified")
    instance = await world.wait_for(POLICY_GATE, f"b-{PROD}-broken", lambda obj: "reason" in obj.get("status", {}))
    await world.idle(timedelta(hours=1))
    instance = await world.get(POLICY_GATE, f"b-{PROD}-broken")
    assert instance["status"]["ready"] is False
    assert "expression" in instance["status"]["reason"]
    assert await world.find(PROMOTION_STEP, f"b-{PROD}") is None
    assert repository.promotions(PROD) == []


async def test_a_failed_bundle_does_not_hold_up_the_next_one(
    world: World, repository: GitRepository, running: ControlPlane, phase: Reached
) -> None:
    await world.apply(
        pipeline(repository, environments=[environment(DEV, health={"timeout": "2s"})]), bundle("b", tag="2-broken")
    )
    await phase("b", "Failed")
    await world.apply(bundle("c", tag="3"))
    await phase("c", "Verified")
    assert [commit.trailers["Kardinal-Bundle"] for commit in repository.promotions(DEV)] == ["c", "b"]
    assert (await world.get(BUNDLE, "b"))["status"]["phase"] == "Failed"
