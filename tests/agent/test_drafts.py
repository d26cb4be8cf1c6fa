"""A draft says "do not merge": kardinal merges none, leaves its title alone, and says who has to act."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.scm import MergeBlocked, PullRequests
from tests.agent.promotion_steps import create, deploy, promotion_step, reached, start_agent, state, wake
from tests.agent.sites import EVERYWHERE, Site
from tests.agent.without_server import Promotions
from tests.support.repository import GitRepository
from tests.support.world import World

DRAFT = "pull request 1 is a draft, and kardinal merges none: a person marks it as ready, or closes it"


@EVERYWHERE
async def test_kardinal_merges_no_draft_and_goes_on_once_it_is_ready(promotions: Promotions, site: Site) -> None:
    site.require_check()
    promotion = await promotions.proposed(approval="auto", pr=True)

    site.make_draft(1)
    title = site.proposals()[1].title
    site.require_check(required=False)
    tried = len(site.asked("merge"))
    for _ in range(3):
        await promotion.pass_time(timedelta(minutes=4))
        await promotion.look()
    assert promotion.waits
    assert promotion.message == DRAFT
    assert promotion.held == ("True", "Blocked")
    assert len(site.asked("merge")) == tried
    assert site.proposals()[1].title == title

    site.make_ready(1)
    await promotion.until(lambda: promotion.landed)
    assert site.proposals()[1].state == "merged"


@EVERYWHERE
async def test_a_draft_under_review_says_that_it_waits_for_being_ready(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    site.make_draft(1)
    await promotion.look()
    assert promotion.message == DRAFT
    assert promotion.held == ("True", "Blocked")
    site.make_ready(1)
    await promotion.look()
    assert promotion.held[0] == "False"
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed
    assert promotion.condition("MergedOutOfBand") is None


async def test_a_draft_in_a_local_repository_is_one_by_its_title(
    world: World, repository: GitRepository, reviewer: PullRequests
) -> None:
    await start_agent(world)
    await deploy(world)
    await create(world, promotion_step(repository, approval="pr-review"))
    await reached(world, "WaitingForMerge")
    (found,) = await reviewer.list()
    await reviewer.update(found.number, title=f"[WIP] {found.title}")
    await wake(world)
    assert (await state(world))["message"] == DRAFT
    with pytest.raises(MergeBlocked, match="is a draft"):
        await reviewer.merge(found.number, by="alice")
    await reviewer.update(found.number, title=found.title)
    await reviewer.merge(found.number, by="alice")
    await wake(world)
    await reached(world, "Verified")
