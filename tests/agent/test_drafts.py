"""A draft says "do not merge": kardinal merges none, leaves its title alone, and says who has to act."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.scm import MergeBlocked, PullRequests
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import (
    create,
    deploy,
    is_held,
    promotion_step,
    reached,
    start_agent,
    state,
    wake,
)
from tests.agent.sites import EVERYWHERE, Site
from tests.support.repository import GitRepository
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes between merges that are put off")

DRAFT = "pull request 1 is a draft, and kardinal merges none: a person marks it as ready, or closes it"


@EVERYWHERE
async def test_kardinal_merges_no_draft_and_goes_on_once_it_is_ready(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    site.require_check()
    await create(world, hosted_step(site, approval="auto", pr=True))
    await reached(world, "WaitingForMerge")

    site.make_draft(1)
    title = site.proposals()[1].title
    site.require_check(required=False)
    tried = len(site.asked("merge"))
    await wake(world)
    await world.live(timedelta(minutes=11))
    status = await state(world)
    assert status["state"] == "WaitingForMerge"
    assert status["message"] == DRAFT
    assert await is_held(world)
    assert len(site.asked("merge")) == tried
    assert site.proposals()[1].title == title

    site.make_ready(1)
    await wake(world)
    await reached(world, "Verified")
    assert site.proposals()[1].state == "merged"


@EVERYWHERE
async def test_a_draft_under_review_says_that_it_waits_for_being_ready(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    site.make_draft(1)
    await wake(world)
    assert (await state(world))["message"] == DRAFT
    assert await is_held(world)
    site.make_ready(1)
    await wake(world)
    assert not await is_held(world)
    site.merge(1)
    await wake(world)
    status = await reached(world, "Verified")
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]


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
