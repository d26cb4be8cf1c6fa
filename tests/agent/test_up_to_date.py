"""Proposals are brought up to date, one at a time, where a host merges only heads with every commit of the base."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.api.names import branch_name
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import (
    BUNDLE_NAME,
    close_gate,
    create,
    deploy,
    is_held,
    open_gate,
    put_gate,
    reached,
    start_agent,
    state,
    wake,
)
from tests.agent.sites import EVERYWHERE, GiteaSite, GitHubSite, Site
from tests.support.fake_gitea import FakeGitea, Reply, Request
from tests.support.names import DEV, STAGING, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World

GATE = f"my-app-1-{DEV}-soak"

pytestmark = pytest.mark.virtual_time("waits for checks of a host")


def others_go_on(repository: GitRepository, text: str = "others went on\n") -> None:
    repository.commit({"README.md": text})


@EVERYWHERE
async def test_a_proposal_that_is_left_behind_is_brought_up_to_date_and_merged(world: World, site: Site) -> None:
    site.require_up_to_date()
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    refused = [True]
    hold_merges(site, refused)
    await create(world, hosted_step(site, approval="auto", pr=True))
    await reached(world, "WaitingForMerge")
    others_go_on(site.repository)
    refused[0] = False
    status = await reached(world, "Verified")
    assert len(site.asked("update")) == 1
    assert site.repository.read("README.md") == "others went on\n"
    assert site.repository.git("merge-base", "--is-ancestor", status["commit"], "main") == ""
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]


def hold_merges(site: Site, refused: list[bool]) -> None:
    """Have checks of the host hold every merge for as long as `refused` says so."""
    if isinstance(site, GiteaSite):
        answer = 405, {"message": "not ready to merge: Not all required status checks successful"}
        site.fake.outage = lambda request: answer if refused[0] and request.path.endswith("/merge") else None
    elif isinstance(site, GitHubSite):
        obstacle = site.project.obstacle
        site.project.obstacle = lambda pull: "checks" if refused[0] else obstacle(pull)  # type: ignore[method-assign]
    else:
        status = site.project.status  # type: ignore[attr-defined]
        site.project.status = lambda one: "ci_must_pass" if refused[0] else status(one)  # type: ignore[attr-defined]


@EVERYWHERE
async def test_update_branch_by_a_person_keeps_the_proposal_ours(world: World, site: Site) -> None:
    site.require_up_to_date()
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    refused = [True]
    hold_merges(site, refused)
    await create(world, hosted_step(site, approval="auto", pr=True))
    await reached(world, "WaitingForMerge")
    others_go_on(site.repository)
    site.update_branch(1)
    head = site.repository.head(branch_name(TEAM, BUNDLE_NAME, DEV))

    async def seen() -> bool:
        return bool((await state(world))["commit"] == head)

    await world.until(seen)
    assert not await is_held(world)
    refused[0] = False
    await reached(world, "Verified")
    assert site.asked("update") == []


@pytest.mark.parametrize("site", ["github", "gitlab"], indirect=True)
@pytest.mark.of_hosts
async def test_one_that_waits_for_a_person_is_brought_up_to_date_where_the_host_says_so(
    world: World, site: Site
) -> None:
    site.require_up_to_date()
    await start_agent(world)
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site))
    await reached(world, "WaitingForMerge")
    others_go_on(site.repository)
    await wake(world)
    await world.until(lambda: len(site.asked("update")) == 1)
    branch = branch_name(TEAM, BUNDLE_NAME, DEV)
    await world.live(timedelta(minutes=5, seconds=1))
    assert site.repository.git("merge-base", "--is-ancestor", "main", branch) == ""
    assert len(site.asked("update")) == 1
    assert (await state(world))["message"].startswith("waits for ")
    assert not await is_held(world)
    site.merge(1)
    await reached(world, "Verified", within=timedelta(minutes=6))


async def two(world: World, gitea: FakeGitea) -> None:
    """Have two proposals whose checks have passed when `main` leaves both behind; an update begins them anew."""
    gitea.blocks_outdated = True

    def checks(request: Request) -> Reply | None:
        found = [one for one in gitea.pulls.values() if request.path == f"/pulls/{one.number}/merge"]
        if not found or gitea.told(gitea.repository.head(found[0].head), "ci")[0] == "success":
            return None
        return 405, {"message": "not ready to merge: Not all required status checks successful"}

    gitea.outage = checks
    await start_agent(world)
    for environment in (DEV, STAGING):
        await deploy(world, environment)
    await world.apply(git_secret(gitea))
    for environment in (DEV, STAGING):
        await create(world, hosted_step(gitea, environment=environment, approval="auto", pr=True))
        await reached(world, "WaitingForMerge", environment)
    others_go_on(gitea.repository)
    for number in gitea.pulls:
        pass_checks(gitea, number)


def pass_checks(gitea: FakeGitea, number: int) -> None:
    head = gitea.repository.head(gitea.pulls[number].head)
    gitea.statuses.setdefault(head, {})["ci"] = {"context": "ci", "state": "success"}


def updated(gitea: FakeGitea) -> list[int]:
    """Return the pull requests that were brought up to date so far, in order."""
    return [int(one.path.split("/")[2]) for one in gitea.asked(r"POST /pulls/\d+/update")]


async def test_the_second_proposal_is_brought_up_to_date_after_the_merge_of_the_first(
    world: World, gitea: FakeGitea
) -> None:
    await two(world, gitea)
    await world.live(timedelta(minutes=10))
    (first,) = updated(gitea)
    other = 3 - first
    waiting = {1: DEV, 2: STAGING}[other]
    assert "another one is brought up to date and merged first" in (await state(world, waiting))["message"]
    pass_checks(gitea, first)
    await world.live(timedelta(minutes=11))
    assert gitea.pulls[first].merged_at is not None
    assert updated(gitea) == [first, other]
    pass_checks(gitea, other)
    await world.live(timedelta(minutes=6))
    assert gitea.pulls[other].merged_at is not None
    assert updated(gitea) == [first, other]


async def test_a_proposal_whose_checks_never_pass_keeps_its_turn_for_half_an_hour(
    world: World, gitea: FakeGitea
) -> None:
    await two(world, gitea)
    await world.live(timedelta(minutes=29))
    (first,) = updated(gitea)
    await world.live(timedelta(minutes=7))
    assert updated(gitea) == [first, 3 - first]


async def test_one_that_a_gate_holds_again_gives_its_turn_away(world: World, gitea: FakeGitea) -> None:
    await put_gate(world, GATE)
    await open_gate(world, GATE)
    gitea.blocks_outdated = True
    await start_agent(world)
    await world.apply(git_secret(gitea))
    gitea.outage = lambda request: (
        (405, {"message": "not ready to merge: The head branch is behind the base branch"})
        if request.path.endswith("/merge")
        else None
    )
    await create(world, hosted_step(gitea, approval="auto", pr=True, requiredGates=[GATE]))
    others_go_on(gitea.repository)
    await world.until(lambda: updated(gitea) == [1])
    await close_gate(world, GATE, reason="error rate 5%")
    await world.settle()
    await create(world, hosted_step(gitea, environment=STAGING, approval="auto", pr=True))
    await reached(world, "WaitingForMerge", STAGING)
    others_go_on(gitea.repository, "and on\n")
    await world.until(lambda: 2 in updated(gitea))
