"""A host that answers success to an opening and makes nothing costs a promotion a moment and not its end."""

from __future__ import annotations

import pytest

from kardinal.api.names import branch_name
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent
from tests.support.fake_gitea import FakeGitea, Pull, Reply, Request
from tests.support.names import DEV, TEAM
from tests.support.world import World


@pytest.mark.parametrize("made_later", [False, True], ids=["never made", "made after the answer"])
async def test_what_was_answered_and_not_made_is_opened_again_and_found_where_it_was_made(
    world: World, gitea: FakeGitea, *, made_later: bool
) -> None:
    """The request that was lost on the way may be done after all, before the next attempt."""
    lied: list[Pull] = []

    def lying(request: Request) -> Reply | None:
        if (request.method, request.path) == ("POST", "/pulls") and not lied:
            body, head = request.body, gitea.repository.head(request.body["head"])
            now = world.clock.now()
            lied.append(Pull(1, body["title"], body["body"], body["head"], body["base"], head, now))
            return 201, gitea.shown(lied[0])
        if made_later and lied and (request.method, request.path) == ("POST", "/pulls"):
            gitea.pulls[1] = lied[0]
        return None

    gitea.outage = lying
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    status = await reached(world, "WaitingForMerge")
    assert status["pullRequest"]["number"] == 1
    assert [pull.head for pull in gitea.pulls.values()] == [branch_name(TEAM, "my-app-1", DEV)]
    gitea.merge(1)
    assert len(gitea.asked("POST /pulls")) == 2
