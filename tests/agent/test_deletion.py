"""A promotion that is deleted leaves no proposal behind, whatever goes first and however its host behaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from kardinal.kube import NotFound, PatchType
from kardinal.objects import GRAPH, NAMESPACE, SECRET, JsonObject
from kardinal.promotion.api.names import FINALIZER, branch_name
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.scm import PullRequests
from kardinal_agent.steps.text_marks import without_owner
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    create,
    deploy,
    promotion_step,
    put,
    reached,
    start_agent,
    wake,
)
from tests.agent.sites import EVERYWHERE, Site
from tests.agent.test_crashes import Crash, start_crashing, until_crashed
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

NAME = f"{BUNDLE_NAME}-{DEV}"
BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
COMMENT = f"The promotion of Bundle {BUNDLE_NAME} to {DEV} was deleted."
_REAL_SECONDS = 30.0
"""Until something has happened that the clock of a test has no part in."""
_MOMENT = 0.02

Delete = Callable[[World], Awaitable[None]]


async def finalizers(world: World) -> list[str]:
    found: list[str] = (await world.get(PROMOTION_STEP, NAME))["metadata"].get("finalizers", [])
    return found


async def is_gone(world: World) -> bool:
    return await world.find(PROMOTION_STEP, NAME) is None


async def delete_step(world: World) -> None:
    await world.delete(PROMOTION_STEP, NAME)


async def delete_bundle(world: World) -> None:
    """Have Bundle and Graph gone before the step, as when nothing waits for the other."""
    for resource, name in ((BUNDLE, BUNDLE_NAME), (GRAPH, BUNDLE_NAME), (PROMOTION_STEP, NAME)):
        with suppress(NotFound):  # a collector of garbage may be faster
            await world.delete(resource, name)


async def delete_graph(world: World) -> None:
    await world.delete(GRAPH, BUNDLE_NAME)


async def delete_namespace(world: World) -> None:
    await world.delete(NAMESPACE, TEAM)


@pytest.mark.parametrize("delete", [delete_step, delete_bundle, delete_graph, delete_namespace])
async def test_a_review_is_closed_with_a_comment_and_its_branch_removed(
    world: World, repository: GitRepository, reviewer: PullRequests, delete: Delete
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    opened = await reached(world, "WaitingForMerge")
    assert opened["proposal"]["branch"] == BRANCH
    assert await finalizers(world) == [FINALIZER]
    await delete(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    found = await reviewer.get(opened["pullRequest"]["number"])
    assert (found.state, found.comments) == ("closed", (COMMENT,))
    assert BRANCH not in repository.branches()


@EVERYWHERE
async def test_every_host_is_asked_to_close_it(world: World, site: Site) -> None:
    await start_agent(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    await delete_bundle(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    (found,) = site.proposals().values()
    assert found.state == "closed"
    (comment,) = found.comments
    assert comment.startswith(COMMENT)
    assert BRANCH not in site.repository.branches()


@pytest.mark.parametrize("written", [False, True], ids=["unwritten", "written"])
@pytest.mark.parametrize("writes", range(5))
async def test_nothing_is_left_wherever_the_agent_died_before(
    world: World, repository: GitRepository, reviewer: PullRequests, writes: int, written: bool
) -> None:
    crash = Crash(writes, written=written)
    await start_crashing(world, crash)
    await create(world, promotion_step(repository, pr=True))
    await until_crashed(world, crash)
    await delete_bundle(world)
    await start_agent(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    assert {found.state for found in await reviewer.list()} <= {"closed", "merged"}
    assert repository.branches() == ["main"]


async def test_a_branch_that_others_have_committed_to_is_theirs(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    addition = repository.commit({"README": "more of it"}, branch=BRANCH)
    await world.settle()
    await delete_step(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    (found,) = await reviewer.list()
    assert found.state == "closed"
    assert repository.head(BRANCH) == addition


async def test_a_withdrawal_that_was_interrupted_goes_on(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    repository.commit({"README": "more of it"}, branch=BRANCH)
    await world.settle()
    (found,) = await reviewer.list()
    await reviewer.update(found.number, body=without_owner(found.body))
    await delete_step(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    assert [found.state for found in await reviewer.list()] == ["closed"]


@EVERYWHERE
async def test_merged_proposal_leaves_no_branch_and_no_finalizer(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    site.merge(1)
    await wake(world)
    await reached(world, "Verified")
    await world.settle()
    assert await finalizers(world) == []
    assert BRANCH not in site.repository.branches()


@pytest.mark.virtual_time("a host may hold a deletion for ten minutes")
async def test_a_host_that_is_gone_holds_a_deletion_for_ten_minutes_at_most(
    world: World, repository: GitRepository
) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    repository.path.rename(repository.path.with_suffix(".gone"))
    with capture_logs() as logs:
        await delete_step(world)
        await world.live(timedelta(minutes=9, seconds=50))
        assert not await is_gone(world)
        await world.until(lambda: is_gone(world), within=timedelta(seconds=20))
    (line,) = [line for line in logs if line["event"] == "a proposal is left behind"]
    assert (line["promotion"], line["branch"]) == (f"{TEAM}/{NAME}", BRANCH)
    assert "there is no repository" in line["error"]
    labels = {"environment": DEV}
    assert agent.manager.metrics.get_sample_value("kardinal_proposals_abandoned_total", labels) == 1


@pytest.mark.virtual_time("the host is back after five minutes")
async def test_a_host_that_comes_back_is_asked_again(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    away = repository.path.rename(repository.path.with_suffix(".gone"))
    await delete_step(world)
    await world.live(timedelta(minutes=5))
    away.rename(repository.path)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=5))
    (found,) = await reviewer.list()
    assert found.state == "closed"


async def test_an_agent_that_was_down_withdraws_when_it_is_back(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    agent = await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await world.stop(agent)
    await delete_bundle(world)
    assert not await is_gone(world)
    await start_agent(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    (found,) = await reviewer.list()
    assert found.state == "closed"


async def test_a_namespace_that_takes_its_secrets_along_still_closes_its_reviews(world: World, site: Site) -> None:
    await start_agent(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    await delete_namespace(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    assert await world.objects(SECRET, TEAM) == []
    assert site.proposals()[1].state == "closed"


async def test_without_a_secret_that_does_not_come_back_nothing_is_waited_for(world: World, site: Site) -> None:
    agent = await start_agent(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    await world.stop(agent)
    await delete_namespace(world)
    async with asyncio.timeout(_REAL_SECONDS):
        while await world.objects(SECRET, TEAM):
            # Nothing comes to rest: the namespace waits for the agent that is stopped.
            await asyncio.sleep(_MOMENT)
    site.forget()
    await start_agent(world)
    await world.until(lambda: is_gone(world), within=timedelta(minutes=1))
    assert site.lines() == []


async def _is_deleted_without_an_effect(
    world: World, repository: GitRepository, reviewer: PullRequests, *, note: JsonObject | None = None
) -> None:
    """Delete a step with our finalizer that no Graph made, beside a review of another promotion."""
    forged = promotion_step(repository, approval="pr-review", name="forged")
    forged["metadata"]["finalizers"] = [FINALIZER]
    await world.apply(forged)
    if note is not None:
        body = {"status": note}
        await world.client.patch(PROMOTION_STEP, "forged", TEAM, body, kind=PatchType.MERGE, subresource="status")
    await world.delete(PROMOTION_STEP, "forged")
    await world.settle()
    assert await world.find(PROMOTION_STEP, "forged") is None
    (found,) = await reviewer.list()
    assert found.state == "open"
    assert BRANCH in repository.branches()


async def test_a_step_that_no_graph_made_has_no_effect_on_the_host(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    await _is_deleted_without_an_effect(world, repository, reviewer)


async def test_a_forged_note_reaches_no_proposal_of_another_promotion(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    noted = await reached(world, "WaitingForMerge")
    note = {field: noted[field] for field in ("proposal", "pullRequest", "commit")}
    await _is_deleted_without_an_effect(world, repository, reviewer, note=note)


async def test_another_attempt_goes_on_with_the_review_that_the_one_before_has_left(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    steps = [{"uses": "git-clone"}, {"uses": "kustomize-set-image"}, {"uses": "git-commit"}, {"uses": "git-push"}]
    steps += [{"uses": "open-pr"}, {"uses": "wait-for-merge", "timeout": "1s"}, {"uses": "health-check"}]
    made = promotion_step(repository, approval="pr-review")
    made["spec"]["steps"] = steps
    await create(world, made)
    await reached(world, "Failed", within=timedelta(minutes=1))
    assert [found.state for found in await reviewer.list()] == ["open"]
    made["spec"]["attempt"] = 2
    await put(world, made)
    await admit_attempt(world)
    await reached(world, "WaitingForMerge", within=timedelta(minutes=1))
    (found,) = await reviewer.list()
    assert (found.state, found.head) == ("open", BRANCH)
    (comment,) = found.comments
    assert comment.startswith(f"Another attempt to promote Bundle {BUNDLE_NAME} to {DEV} ")
    assert repository.branches() == [BRANCH, "main"]


async def admit_attempt(world: World) -> None:
    entry = {"attempt": 2, "state": "Pending", "admittedAt": "2026-03-03T09:00:00Z"}
    body = {"status": {"environments": {DEV: entry}}}
    await world.client.patch(BUNDLE, BUNDLE_NAME, TEAM, body, kind=PatchType.MERGE, subresource="status")
