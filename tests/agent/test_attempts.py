"""A promotion that is asked for again starts over: on a branch of its own, and with what is in Git looked up first."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.kube import PatchType
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.scm import PullRequests
from kardinal.tree.git_names import TRAILER_ATTEMPT
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, put, reached, start_agent, state
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

ADMITTED = {"state": "Pending", "attempt": 2, "admittedAt": "2026-03-03T09:30:00Z"}


async def admit_again(world: World) -> None:
    body = {"status": {"environments": {DEV: ADMITTED}}}
    await world.client.patch(BUNDLE, BUNDLE_NAME, TEAM, body, kind=PatchType.MERGE, subresource="status")


@pytest.mark.virtual_time("a health timeout before the other attempt")
async def test_a_change_that_is_there_already_is_proven_again_without_another_commit(
    world: World, repository: GitRepository
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, health={"timeout": "1m"}))
    first = await reached(world, "Failed")
    assert "not healthy within 1m" in first["message"]
    await put(world, promotion_step(repository, health={"timeout": "1m"}, attempt=2))
    await admit_again(world)
    again = await reached(world, "HealthChecking")
    assert (again["attempt"], again["startedAt"] > first["startedAt"]) == (2, True)
    await deploy(world)
    await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1


@pytest.mark.virtual_time("a health timeout before the other attempt")
async def test_a_change_that_was_taken_back_is_made_again_once(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, health={"timeout": "1m"}))
    await reached(world, "Failed")
    before = repository.read(f"environments/{DEV}/kustomization.yaml")
    repository.commit({f"environments/{DEV}/kustomization.yaml": before.replace("1.1.0", "1.0.0")})
    await put(world, promotion_step(repository, health={"timeout": "1m"}, attempt=2))
    await admit_again(world)
    await deploy(world)
    await reached(world, "Verified")
    assert repository.read(f"environments/{DEV}/kustomization.yaml") == before
    latest, first = (commit.trailers.get(TRAILER_ATTEMPT) for commit in repository.promotions(DEV))
    assert {latest, first} == {None, "2"}


async def test_another_attempt_is_proposed_on_a_branch_of_its_own(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await reviewer.close(1, by="alice", comment="not now")
    await reached(world, "Failed")
    await put(world, promotion_step(repository, approval="pr-review", attempt=2))
    await admit_again(world)
    again = await reached(world, "WaitingForMerge")
    assert again["pullRequest"]["branch"] == f"kardinal/{TEAM}/{BUNDLE_NAME}/{DEV}.2"
    assert {found.number: found.state for found in await reviewer.list()} == {1: "closed", 2: "open"}


async def test_another_attempt_and_an_environment_with_its_number_have_branches_of_their_own(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    twin = f"{DEV}-2"
    path = "environments/{}/kustomization.yaml"
    repository.commit({path.format(twin): repository.read(path.format(DEV))})
    await start_agent(world)
    again = promotion_step(repository, approval="pr-review", attempt=2)
    await create(world, again, promotion_step(repository, twin, approval="pr-review"))
    await admit_again(world)
    for environment in (DEV, twin):
        await reached(world, "WaitingForMerge", environment=environment)
    assert len({found.head for found in await reviewer.list()}) == 2


async def test_decision_on_an_earlier_attempt_does_not_bind_the_next(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, attempt=2))
    await world.live(timedelta(seconds=3))
    assert "preparedAt" in await state(world)
    assert repository.promotions(DEV) == []
    superseded = {"status": {"phase": "Superseded", "environments": {DEV: {"displacedBy": "my-app-2"}}}}
    await world.client.patch(BUNDLE, BUNDLE_NAME, TEAM, superseded, kind=PatchType.MERGE, subresource="status")
    await world.settle()
    assert (await world.get(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}"))["status"]["state"] == "Promoting"
