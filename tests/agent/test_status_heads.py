"""Success is said of nothing but what kardinal proposes, where it proposes it, and for as long as it does."""

from __future__ import annotations

from typing import Any

from kardinal.api.names import branch_name
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, reached, start_agent, supersede, wake
from tests.agent.sites import EVERYWHERE, Site
from tests.support.names import DEV, TEAM
from tests.support.world import World

BRANCH = branch_name(TEAM, BUNDLE_NAME, DEV)
CONTEXTS = ("kardinal", f"kardinal/my-app/{DEV}")


async def waiting(world: World, site: Site, **spec: Any) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, **spec))
    await reached(world, "WaitingForMerge")
    assert {site.status(1, context)[0] for context in CONTEXTS} == {"success"}


def told(site: Site) -> set[tuple[str, str]]:
    return {site.status(1, context) for context in CONTEXTS}


@EVERYWHERE
async def test_commits_of_others_on_the_branch_get_no_success(world: World, site: Site) -> None:
    await waiting(world, site)
    ours = site.repository.head(BRANCH)
    site.repository.commit({"environments/prod/backdoor": "x"}, branch=BRANCH)
    await wake(world)
    assert told(site) == {("pending", f"branch {BRANCH} has commits of others, of which no gate was asked")}
    site.repository.git("update-ref", f"refs/heads/{BRANCH}", ours)
    await wake(world)
    assert {state for state, _ in told(site)} == {"success"}


@EVERYWHERE
async def test_a_proposal_that_goes_elsewhere_gets_no_success(world: World, site: Site) -> None:
    await waiting(world, site)
    site.repository.git("branch", "elsewhere", "main")
    site.retarget(1, "elsewhere")
    await wake(world)
    ((state, description),) = told(site)
    assert state == "pending"
    assert description.startswith("pull request 1 is to be merged into elsewhere instead of main")


@EVERYWHERE
async def test_a_superseded_proposal_loses_its_success(world: World, site: Site) -> None:
    await waiting(world, site)
    site.repository.commit({"README": "theirs"}, branch=BRANCH)
    await wake(world)
    await supersede(world)
    await reached(world, "Failed")
    assert site.proposals()[1].state == "closed"
    assert {state for state, _ in told(site)} == {"pending"}


@EVERYWHERE
async def test_the_commit_of_a_superseded_proposal_loses_its_success_with_its_branch(world: World, site: Site) -> None:
    await waiting(world, site)
    await supersede(world)
    await reached(world, "Failed")
    assert BRANCH not in site.repository.branches()
    assert told(site) == {("pending", f"Bundle {BUNDLE_NAME} is superseded by a newer Bundle of my-app")}
