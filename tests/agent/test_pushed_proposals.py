"""A proposal whose commit reached the base by `git push` is landed, whatever its pull request says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import create, deploy, reached, start_agent, wake
from tests.agent.sites import EVERYWHERE, GiteaSite, Site
from tests.agent.without_server import HostedPromotion, Promotions
from tests.support.world import World


def branch_of(promotion: HostedPromotion) -> str:
    assert promotion.status.pull_request is not None
    return promotion.status.pull_request.branch


@pytest.mark.virtual_time("seconds that a host has to show a merge")
@EVERYWHERE
async def test_a_push_of_the_proposed_commit_lands_the_promotion(world: World, site: Site) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    branch = (await reached(world, "WaitingForMerge"))["pullRequest"]["branch"]
    commit = site.repository.head(branch)
    site.repository.git("update-ref", "refs/heads/main", commit)
    await wake(world)
    status = await reached(world, "Verified", within=timedelta(minutes=1))
    assert status["commit"] == commit
    assert status["evidence"]["approvedBy"] == []
    (pull,) = site.proposals().values()
    assert pull.state == "closed"
    assert f"{commit[:12]} is on main" in pull.comments[-1]
    assert site.repository.branches() == ["main"]


async def test_a_commit_that_was_applied_anew_lands_it_as_well(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    branch = branch_of(promotion)
    git = site.repository.git
    base = site.repository.commit({"README.md": "others went on\n"})
    tree = git("merge-tree", "--write-tree", base, branch).splitlines()[0]
    applied = git("commit-tree", tree, "-p", base, stdin=git("log", "-1", "--format=%B", branch))
    git("update-ref", "refs/heads/main", applied)
    site.repository.commit({"README.md": "and on\n"})
    await promotion.until(lambda: promotion.landed)
    assert promotion.status.commit == applied


async def test_a_pull_request_that_was_closed_with_its_commit_on_the_base_is_landed(
    promotions: Promotions, site: Site
) -> None:
    promotion = await promotions.proposed()
    site.repository.git("update-ref", "refs/heads/main", branch_of(promotion))
    site.close(1)
    await promotion.go_on()
    assert promotion.landed
    assert promotion.status.commit == site.repository.head()


async def test_a_push_while_a_gate_is_closed_is_flagged(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed()
    promotion.answer(closed="error rate 5%")
    site.repository.git("update-ref", "refs/heads/main", branch_of(promotion))
    await promotion.until(lambda: promotion.landed)
    flagged = promotion.condition("MergedOutOfBand")
    assert flagged is not None
    assert "error rate 5%" in flagged.message
    assert "pushed to main" in flagged.message
    assert promotion.announced[-1] == "MergedOutOfBand"


async def test_a_merge_that_the_host_shows_a_moment_later_is_a_merge(promotions: Promotions, site: GiteaSite) -> None:
    promotion = await promotions.proposed()
    gitea = site.fake
    before = gitea.shown(gitea.pulls[1])
    landed = gitea.merge(1, method="rebase")
    gitea.outage = lambda request: (200, before) if (request.method, request.path) == ("GET", "/pulls/1") else None
    written = len(site.written())
    await promotion.go_on()
    assert promotion.waits
    assert promotion.message.endswith("is shown as merged")
    assert len(site.written()) == written
    gitea.outage = lambda request: None
    await promotion.until(lambda: promotion.landed)
    assert promotion.status.commit == landed
    assert (promotion.status.outputs or {})["wait-for-merge"]["mergedBy"] == "alice"
