"""A proposal whose commit reached the base by `git push` is landed, whatever its pull request says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import (
    close_gate,
    create,
    deploy,
    open_gate,
    put_gate,
    reached,
    start_agent,
    state,
    wake,
)
from tests.agent.sites import EVERYWHERE, Site
from tests.support.fake_gitea import FakeGitea
from tests.support.names import DEV
from tests.support.world import World

GATE = f"my-app-1-{DEV}-soak"

pytestmark = pytest.mark.virtual_time("seconds that a host has to show a merge")


async def waiting(world: World, site: Site, **spec: Any) -> str:
    """Have a promotion wait for a person; return the branch of its proposal."""
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, **spec))
    return str((await reached(world, "WaitingForMerge"))["pullRequest"]["branch"])


@EVERYWHERE
async def test_a_push_of_the_proposed_commit_lands_the_promotion(world: World, site: Site) -> None:
    branch = await waiting(world, site)
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


async def test_a_commit_that_was_applied_anew_lands_it_as_well(world: World, site: Site) -> None:
    branch = await waiting(world, site)
    git = site.repository.git
    base = site.repository.commit({"README.md": "others went on\n"})
    tree = git("merge-tree", "--write-tree", base, branch).splitlines()[0]
    applied = git("commit-tree", tree, "-p", base, stdin=git("log", "-1", "--format=%B", branch))
    git("update-ref", "refs/heads/main", applied)
    site.repository.commit({"README.md": "and on\n"})
    await wake(world)
    assert (await reached(world, "Verified", within=timedelta(minutes=1)))["commit"] == applied


async def test_a_pull_request_that_was_closed_with_its_commit_on_the_base_is_landed(
    world: World, gitea: FakeGitea
) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    branch = (await reached(world, "WaitingForMerge"))["pullRequest"]["branch"]
    gitea.repository.git("update-ref", "refs/heads/main", branch)
    gitea.close(1)
    await wake(world)
    status = await reached(world, "Verified", within=timedelta(minutes=1))
    assert status["commit"] == gitea.repository.head()


async def test_a_push_while_a_gate_is_closed_is_flagged(world: World, site: Site) -> None:
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    branch = await waiting(world, site, requiredGates=[GATE])
    await close_gate(world, GATE, reason="error rate 5%")
    await world.settle()
    site.repository.git("update-ref", "refs/heads/main", branch)
    await wake(world)
    status = await reached(world, "HealthChecking", within=timedelta(minutes=1))
    flagged = next(one for one in status["conditions"] if one["type"] == "MergedOutOfBand")
    assert "error rate 5%" in flagged["message"]
    assert "pushed to main" in flagged["message"]


async def test_a_merge_that_the_host_shows_a_moment_later_is_a_merge(world: World, gitea: FakeGitea) -> None:
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(gitea))
    await create(world, hosted_step(gitea))
    await reached(world, "WaitingForMerge")
    before = gitea.shown(gitea.pulls[1])
    landed = gitea.merge(1, method="rebase")
    gitea.outage = lambda request: (200, before) if (request.method, request.path) == ("GET", "/pulls/1") else None
    await wake(world)
    assert (await state(world))["state"] == "WaitingForMerge"
    gitea.outage = lambda request: None
    status = await reached(world, "Verified", within=timedelta(minutes=1))
    assert status["commit"] == landed
    assert status["evidence"]["approvedBy"] == ["alice"]
