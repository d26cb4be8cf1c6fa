"""A promotion whose pull request a person has closed fails, and says who closed it where the host does."""

from __future__ import annotations

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, wake
from tests.agent.sites import EVERYWHERE, PERSON, Site
from tests.support.fake_gitea import FakeGitea
from tests.support.world import World


@EVERYWHERE
async def test_the_person_who_closed_it_is_named(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    site.close(1)
    await wake(world)
    status = await reached(world, "Failed")
    assert f"was closed by {PERSON} without being merged" in status["message"]


@pytest.mark.parametrize("answer", [(403, {"message": "token lacks read:issue"}), (200, "none"), (200, [])])
async def test_a_host_that_does_not_say_leaves_the_name_out(
    world: World, gitea: FakeGitea, answer: tuple[int, object]
) -> None:
    gitea.outage = lambda request: answer if "/timeline" in request.path else None
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    await reached(world, "WaitingForMerge")
    gitea.close(1)
    await wake(world)
    status = await reached(world, "Failed")
    assert "was closed by an unknown user without being merged" in status["message"]
    assert len(gitea.asked(r"GET /issues/1/timeline.*")) == 1
