"""A promotion through a pull request: proposed once, and merged by a person unless it is for the record only."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from kardinal.kube import PatchType
from kardinal.objects import JsonObject
from kardinal.objects.conditions import format_time
from kardinal.promotion.api.names import branch_name
from kardinal.promotion.kinds import BUNDLE, PROMOTION_STEP
from kardinal.scm import PullRequests
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    create,
    deploy,
    open_gate,
    promotion_step,
    put,
    put_gate,
    reached,
    start_agent,
    supersede,
)
from tests.support.names import DEV, STAGING, TEAM
from tests.support.objects import bundle
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

GATE = f"my-app-1-{DEV}-soak"


def reviewed(repository: GitRepository, **spec: Any) -> JsonObject:
    return promotion_step(repository, approval="pr-review", **spec)


async def test_a_reviewer_merges_and_the_promotion_goes_on(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    status = await reached(world, "WaitingForMerge")

    (found,) = await reviewer.list()
    assert (found.head, found.base, found.state) == (branch_name(TEAM, BUNDLE_NAME, DEV), "main", "open")
    assert (found.pipeline, found.bundle, found.environment) == ("my-app", BUNDLE_NAME, DEV)
    assert found.labels == ("kardinal",)
    assert status["prURL"] == found.url == status["pullRequest"]["url"]
    assert status["message"] == f"waits for {found.url} to be merged"
    assert repository.promotions(DEV) == []

    await reviewer.merge(found.number, by="alice")
    status = await reached(world, "Verified", within=timedelta(seconds=2))

    (commit,) = repository.promotions(DEV)
    assert status["commit"] == commit.sha
    assert status["evidence"]["approvedBy"] == ["alice"]
    assert status["mergedAt"] <= status["verifiedAt"]


async def test_the_body_shows_what_the_cluster_knows(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    await world.apply(bundle(BUNDLE_NAME))
    verified = world.clock.now() - timedelta(minutes=45)
    moment = format_time(verified)
    staging = {"state": "Verified", "verifiedAt": moment, "healthy": True, "healthySince": moment}
    known = {"status": {"environments": {STAGING: staging}}}
    await world.client.patch(BUNDLE, BUNDLE_NAME, TEAM, known, kind=PatchType.MERGE, subresource="status")
    await put(world, reviewed(repository, requiredGates=[GATE]))
    await reached(world, "WaitingForMerge")
    (found,) = await reviewer.list()
    assert found.title == f"Promote my-app 1.1.0 to {DEV}"
    assert "| soak | org | PASS | soaked 45m of 30m |" in found.body
    assert f"| Image | {IMAGE}:1.1.0 |" in found.body
    assert f"| {STAGING} | 45m ago ({verified:%Y-%m-%d %H:%M} UTC) | 45m |" in found.body
    assert f"- {IMAGE}: 1.0.0 to 1.1.0 in environments/{DEV}/kustomization.yaml" in found.body


async def test_a_reviewer_with_an_endless_name_is_cut_short(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await reviewer.merge(1, by="x" * 5000)
    status = await reached(world, "Verified")
    assert status["evidence"]["approvedBy"] == ["x" * 256]


async def test_a_merge_without_a_name_is_one_by_an_unknown_user(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await reviewer.merge(1, by="")
    status = await reached(world, "Verified")
    assert status["outputs"]["wait-for-merge"] == {"mergedBy": "an unknown user"}


async def test_nothing_is_written_while_a_review_takes_its_time(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await world.settle()
    requests = sum(world.audit.counts.values())
    await world.idle(timedelta(seconds=30))
    assert sum(world.audit.counts.values()) == requests


async def test_closed_without_a_merge_ends_the_promotion(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await reviewer.close(1, by="bob", comment="not today")
    status = await reached(world, "Failed", within=timedelta(seconds=2))
    assert status["message"] == (
        f"wait-for-merge: pull request {status['prURL']} was closed by bob without being merged"
    )
    assert status["conditions"][0]["reason"] == "PullRequestClosed"
    assert repository.promotions(DEV) == []


async def test_a_pull_request_for_the_record_is_merged_by_the_agent(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, pr=True))
    status = await reached(world, "Verified")
    (found,) = await reviewer.list()
    assert (found.state, found.merged_by) == ("merged", "kardinal")
    assert "approvedBy" not in status["evidence"] or status["evidence"]["approvedBy"] == []
    assert len(repository.promotions(DEV)) == 1


async def test_the_agents_own_merge_survives_a_change_of_the_same_lines(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await world.stop(agent)
    overlay = repository.read(f"environments/{DEV}/kustomization.yaml")
    repository.commit({f"environments/{DEV}/kustomization.yaml": overlay.replace("1.0.0", "1.0.5")})
    await put(world, promotion_step(repository, approval="auto", pr=True))
    await start_agent(world)
    await reached(world, "Verified")
    (found,) = await reviewer.list()
    assert (found.state, found.merged_by) == ("merged", "kardinal")
    assert repository.read(f"environments/{DEV}/kustomization.yaml") == overlay.replace("1.0.0", "1.1.0")
    assert len(repository.promotions(DEV)) == 1


async def test_nothing_to_change_needs_no_pull_request(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world, image=f"{IMAGE}:1.0.0")
    await create(world, reviewed(repository), tag="1.0.0")
    status = await reached(world, "Verified")
    assert await reviewer.list() == []
    assert "prURL" not in status


async def test_a_bundle_made_again_under_its_name_is_another_one(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await reviewer.close(1, by="bob", comment="")
    await reached(world, "Failed")
    await world.delete(BUNDLE, BUNDLE_NAME)
    repository.commit({"README": "meanwhile"})

    async def collected() -> bool:
        return await world.find(PROMOTION_STEP, f"{BUNDLE_NAME}-{DEV}") is None

    await world.until(collected)
    await world.live(timedelta(seconds=1))
    await create(world, reviewed(repository))
    status = await reached(world, "WaitingForMerge")
    assert status["pullRequest"]["number"] == 2
    await reviewer.merge(2, by="alice")
    await reached(world, "Verified")
    assert len(repository.promotions(DEV)) == 1


async def test_a_superseded_proposal_is_closed_with_a_comment(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await supersede(world)
    status = await reached(world, "Failed", within=timedelta(seconds=2))
    assert status["message"] == "superseded by a newer Bundle of my-app"
    assert status["conditions"][0]["reason"] == "Superseded"
    (found,) = await reviewer.list()
    (comment,) = found.comments
    assert found.state == "closed"
    assert comment.startswith("Bundle my-app-1 is superseded")


async def test_a_superseded_proposal_that_was_merged_first_goes_on_to_its_end(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    agent = await start_agent(world)
    await deploy(world)
    await create(world, reviewed(repository))
    await reached(world, "WaitingForMerge")
    await world.stop(agent)
    await reviewer.merge(1, by="alice")
    await supersede(world)
    await start_agent(world)
    status = await reached(world, "Verified")
    assert status["evidence"]["approvedBy"] == ["alice"]
