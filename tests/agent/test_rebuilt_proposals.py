"""The diff that is stored and shown is that of the proposal as it is, also after it was made again."""

from __future__ import annotations

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, state, wake
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV
from tests.support.world import World

OVERLAY = f"environments/{DEV}/kustomization.yaml"


async def waiting(world: World, gitea: FakeGitea) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    await reached(world, "WaitingForMerge")


async def test_a_proposal_that_is_made_again_has_the_diff_of_today(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea)
    assert '-    newTag: "1.0.0"' in (await state(world))["diff"]
    overlay = gitea.repository.read(OVERLAY)
    gitea.repository.commit({OVERLAY: overlay.replace("1.0.0", "1.0.5")})
    await wake(world)
    diff = (await state(world))["diff"]
    assert '-    newTag: "1.0.5"' in diff
    assert '+    newTag: "1.1.0"' in diff
    assert '-    newTag: "1.0.5"' in gitea.pulls[1].body
    assert '-    newTag: "1.0.0"' not in gitea.pulls[1].body
    written = len(gitea.asked("(POST|PATCH|PUT|DELETE) .*"))
    await wake(world)
    assert len(gitea.asked("(POST|PATCH|PUT|DELETE) .*")) == written
    assert (await state(world))["diff"] == diff


async def test_a_proposal_that_stays_keeps_its_diff_and_its_status(world: World, gitea: FakeGitea) -> None:
    await waiting(world, gitea)
    before = await state(world)
    gitea.repository.commit({"README.md": "others went on\n"})
    await wake(world)
    assert await state(world) == before
