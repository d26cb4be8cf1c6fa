"""A squash that kardinal asks a host for has the message of the promotion, and so its trailers."""

from __future__ import annotations

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, reached, start_agent
from tests.agent.sites import EVERYWHERE, Site
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV, TEAM
from tests.support.world import World


@EVERYWHERE
async def test_the_commit_of_a_squash_has_subject_and_trailers_of_the_promotion(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, approval="auto", pr=True, git={"mergeMethod": "squash"}))
    status = await reached(world, "Verified")
    newest = site.repository.promotions(DEV)[0]
    assert newest.sha == status["commit"]
    assert newest.subject.startswith(f"Promote my-app 1.1.0 to {DEV}")
    assert newest.trailers["Kardinal-Bundle"] == BUNDLE_NAME
    assert newest.trailers["Kardinal-Step"] == f"{TEAM}/{BUNDLE_NAME}-{DEV}"


async def test_a_squash_that_is_the_default_of_the_repository_has_them_as_well(world: World, gitea: FakeGitea) -> None:
    gitea.default_method = "squash"
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea, approval="auto", pr=True))
    status = await reached(world, "Verified")
    assert gitea.merge_methods == ["squash"]
    assert [one.sha for one in gitea.repository.promotions(DEV)] == [status["commit"]]
