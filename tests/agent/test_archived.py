"""A promotion that meets an archived repository says so, whatever is refused, and goes on once it is unarchived."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, is_held, reached, start_agent, state
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.world import World

pytestmark = pytest.mark.virtual_time("minutes until a refused effect is tried again")


@pytest.mark.parametrize("refused", ["push", "POST /pulls", "POST /pulls/1/merge"])
async def test_a_promotion_says_that_the_repository_is_archived(world: World, gitea: FakeGitea, refused: str) -> None:
    met: list[str] = []

    def archive(request: Request) -> None:
        if f"{request.method} {request.path}" == refused and not met:
            met.append(refused)
            gitea.rights.settings["archived"] = True

    gitea.outage = archive
    gitea.rights.settings["archived"] = refused == "push"
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, approval="auto", pr=refused != "push"))
    await world.until(lambda: is_held(world))
    message = (await state(world))["message"]
    assert f"git.url: {gitea.url} is archived at its host" in message
    assert "Unarchive it" in message
    gitea.rights.settings["archived"] = False
    await reached(world, "Verified", within=timedelta(hours=1))


async def test_a_refusal_of_another_kind_is_told_as_it_is(world: World, gitea: FakeGitea) -> None:
    refusal = 403, {"message": "token does not have the scope write:repository"}
    gitea.outage = lambda request: refusal if (request.method, request.path) == ("POST", "/pulls") else None
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    await world.until(lambda: is_held(world))
    message = (await state(world))["message"]
    assert "write:repository" in message
    assert "archived" not in message
