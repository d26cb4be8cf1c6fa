"""A promotion into a branch that has a merge queue: it is put there once, and lands when the queue merges it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, state
from tests.agent.sites import GitHubSite
from tests.agent.without_server import HostedPromotion, Promotions
from tests.support.names import DEV
from tests.support.world import World

pytestmark = [
    pytest.mark.parametrize("site", ["github"], indirect=True),
    pytest.mark.of_hosts,
    pytest.mark.virtual_time("waits for the queue"),
]

QUEUE = "github-merge-queue[bot]"
QUEUED = "in the merge queue of main"


async def queued(world: World, site: GitHubSite) -> None:
    """Have a promotion in the queue of its branch."""
    site.project.queues.add("main")
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, approval="auto", pr=True))

    async def waits() -> bool:
        return QUEUED in ((await state(world)).get("message") or "")

    await world.until(waits)


def enqueued(site: GitHubSite) -> int:
    """Return how often the pull request was put into the queue."""
    sent = site.server.requests("POST", "/api/graphql")
    return sum("enqueuePullRequest" in one.body["query"] for one in sent)


async def test_a_queue_is_entered_once_and_its_merge_is_the_promotion(world: World, site: GitHubSite) -> None:
    await queued(world, site)
    await world.live(timedelta(minutes=10))
    assert site.project.pulls[1].queued
    assert enqueued(site) == 1
    assert site.asked("merge") == []
    assert len(site.server.requests("POST", "/api/graphql")) <= 12
    assert "retry" not in await state(world)
    landed = site.project.merge(1, "squash", by=QUEUE).merge_commit_sha
    status = await reached(world, "Verified", within=timedelta(minutes=5, seconds=1))
    assert status["commit"] == landed == site.repository.head()
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]
    assert enqueued(site) == 1


async def in_queue(promotions: Promotions, site: GitHubSite) -> HostedPromotion:
    """Have the promotion without an API server in the queue of its branch."""
    site.project.queues.add("main")
    promotion = promotions.begin(approval="auto", pr=True)
    promotion.answer()
    await promotion.until(lambda: QUEUED in promotion.message)
    return promotion


async def test_a_queue_that_lets_go_is_entered_again(promotions: Promotions, site: GitHubSite) -> None:
    promotion = await in_queue(promotions, site)
    site.project.pulls[1].queued = False
    await promotion.until(lambda: site.project.pulls[1].queued)
    assert enqueued(site) == 2
    site.project.merge(1, "merge", by=QUEUE)
    await promotion.until(lambda: promotion.landed)


async def test_a_merge_of_the_queue_while_a_gate_is_closed_is_flagged(promotions: Promotions, site: GitHubSite) -> None:
    promotion = await in_queue(promotions, site)
    promotion.answer(closed="error rate 5%")
    await promotion.look()
    assert site.status(1, "kardinal") == ("pending", "held by gate soak: error rate 5%")
    site.project.merge(1, "merge", by=QUEUE)
    await promotion.go_on()
    assert promotion.landed
    assert promotion.condition("MergedOutOfBand") is not None


async def test_one_that_was_taken_out_of_the_queue_waits_for_a_person_until_its_head_changes(
    promotions: Promotions, site: GitHubSite
) -> None:
    promotion = await in_queue(promotions, site)
    await promotion.pass_time(timedelta(minutes=1))
    site.project.dequeue(1, reason="failed_checks", by=QUEUE)
    await promotion.until(lambda: promotion.held == ("True", "Blocked"))
    assert "taken out" in promotion.message
    assert "failed_checks" in promotion.message
    for _ in range(6):
        await promotion.pass_time(timedelta(minutes=5))
        await promotion.look()
    assert enqueued(site) == 1
    overlay = f"environments/{DEV}/kustomization.yaml"
    site.repository.commit({overlay: f"{site.repository.read(overlay)}# others\n"})
    await promotion.until(lambda: site.project.pulls[1].queued)
    assert enqueued(site) == 2
    site.project.merge(1, "merge", by=QUEUE)
    await promotion.until(lambda: promotion.landed)


async def test_one_that_a_person_puts_back_into_the_queue_is_held_no_more(
    promotions: Promotions, site: GitHubSite
) -> None:
    promotion = await in_queue(promotions, site)
    await promotion.pass_time(timedelta(minutes=1))
    site.project.dequeue(1, reason="manual", by="alice")
    await promotion.until(lambda: promotion.held == ("True", "Blocked"))
    site.project.pulls[1].queued = True
    await promotion.until(lambda: promotion.held[0] == "False")
    assert enqueued(site) == 1
    site.project.merge(1, "merge", by=QUEUE)
    await promotion.until(lambda: promotion.landed)
