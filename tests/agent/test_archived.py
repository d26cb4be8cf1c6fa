"""A promotion that meets an archived repository says so, whatever is refused, and goes on once it is unarchived."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, is_held, reached, start_agent, state
from tests.agent.sites import GiteaSite
from tests.agent.without_server import Promotions
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.world import World


@pytest.mark.virtual_time("minutes until a refused effect is tried again")
async def test_a_push_to_an_archived_repository_says_so(world: World, gitea: FakeGitea) -> None:
    gitea.rights.settings["archived"] = True
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, approval="auto"))
    await world.until(lambda: is_held(world))
    message = (await state(world))["message"]
    assert f"git.url: {gitea.url} is archived at its host" in message
    assert "Unarchive it" in message
    gitea.rights.settings["archived"] = False
    await reached(world, "Verified", within=timedelta(hours=1))


@pytest.mark.parametrize("refused", ["POST /pulls", "POST /pulls/1/merge"])
async def test_a_promotion_says_that_the_repository_is_archived(
    promotions: Promotions, site: GiteaSite, refused: str
) -> None:
    gitea = site.fake
    met: list[str] = []

    def archive(request: Request) -> None:
        if f"{request.method} {request.path}" == refused and not met:
            met.append(refused)
            gitea.rights.settings["archived"] = True

    gitea.outage = archive
    promotion = promotions.begin(approval="auto", pr=True)
    await promotion.until(lambda: promotion.held == ("True", "Blocked"))
    assert "is archived at its host" in promotion.message
    assert "Unarchive it" in promotion.message
    gitea.rights.settings["archived"] = False
    await promotion.until(lambda: promotion.landed)


async def test_a_refusal_of_another_kind_is_told_as_it_is(promotions: Promotions, site: GiteaSite) -> None:
    refusal = 403, {"message": "token does not have the scope write:repository"}
    site.fake.outage = lambda request: refusal if (request.method, request.path) == ("POST", "/pulls") else None
    promotion = promotions.begin()
    await promotion.until(lambda: promotion.held == ("True", "Blocked"))
    assert "write:repository" in promotion.message
    assert "archived" not in promotion.message
