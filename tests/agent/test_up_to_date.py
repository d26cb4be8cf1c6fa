"""Proposals are brought up to date, one at a time, where a host merges only heads with every commit of the base."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kardinal.promotion.api.names import branch_name
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, is_held, reached, start_agent, state
from tests.agent.sites import EVERYWHERE, GiteaSite, GitHubSite, Site
from tests.agent.without_server import HostedPromotion, Promotions
from tests.support.fake_gitea import FakeGitea, Reply, Request
from tests.support.names import DEV, STAGING, TEAM
from tests.support.repository import GitRepository
from tests.support.world import World


def others_go_on(repository: GitRepository, text: str = "others went on\n") -> None:
    repository.commit({"README.md": text})


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


@pytest.mark.virtual_time("waits for checks of a host")
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
    site.update_branch(1)
    head = site.repository.head(branch_name(TEAM, BUNDLE_NAME, DEV))

    async def seen() -> bool:
        return bool((await state(world))["commit"] == head)

    await world.until(seen)
    assert not await is_held(world)
    assert site.asked("update") == []

    others_go_on(site.repository, "others went on again\n")
    refused[0] = False
    status = await reached(world, "Verified")
    assert len(site.asked("update")) == 1
    assert site.repository.read("README.md") == "others went on again\n"
    assert site.repository.git("merge-base", "--is-ancestor", status["commit"], "main") == ""
    assert "MergedOutOfBand" not in [one["type"] for one in status["conditions"]]


@pytest.mark.parametrize("site", ["github", "gitlab"], indirect=True)
async def test_one_that_waits_for_a_person_is_brought_up_to_date_where_the_host_says_so(
    promotions: Promotions, site: Site
) -> None:
    site.require_up_to_date()
    promotion = await promotions.proposed()
    others_go_on(site.repository)
    await promotion.until(lambda: site.asked("update"))
    branch = branch_name(TEAM, BUNDLE_NAME, DEV)
    await promotion.until(lambda: promotion.message.startswith("waits for "))
    assert site.repository.git("merge-base", "--is-ancestor", "main", branch) == ""
    for _ in range(3):
        await promotion.pass_time(timedelta(minutes=2))
        await promotion.look()
    assert len(site.asked("update")) == 1
    assert promotion.message.startswith("waits for ")
    assert promotion.held[0] != "True"
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed


async def two(promotions: Promotions, gitea: FakeGitea) -> list[HostedPromotion]:
    """Have two proposals whose checks have passed when `main` leaves both behind; an update begins them anew."""
    gitea.blocks_outdated = True

    def checks(request: Request) -> Reply | None:
        found = [one for one in gitea.pulls.values() if request.path == f"/pulls/{one.number}/merge"]
        if not found or gitea.told(gitea.repository.head(found[0].head), "ci")[0] == "success":
            return None
        return 405, {"message": "not ready to merge: Not all required status checks successful"}

    gitea.outage = checks
    found = [
        await promotions.proposed(environment=environment, approval="auto", pr=True) for environment in (DEV, STAGING)
    ]
    others_go_on(gitea.repository)
    for number in gitea.pulls:
        pass_checks(gitea, number)
    return found


def pass_checks(gitea: FakeGitea, number: int) -> None:
    head = gitea.repository.head(gitea.pulls[number].head)
    gitea.statuses.setdefault(head, {})["ci"] = {"context": "ci", "state": "success"}


def updated(gitea: FakeGitea) -> list[int]:
    """Return the pull requests that were brought up to date so far, in order."""
    return [int(one.path.split("/")[2]) for one in gitea.asked(r"POST /pulls/\d+/update")]


async def test_the_second_proposal_is_brought_up_to_date_after_the_merge_of_the_first(
    promotions: Promotions, site: GiteaSite
) -> None:
    gitea = site.fake
    first, second = await two(promotions, gitea)
    for _ in range(3):
        for promotion in (first, second):
            await promotion.pass_time(timedelta(minutes=2))
            await promotion.look()
    assert updated(gitea) == [1]
    assert "another one is brought up to date and merged first" in second.message
    pass_checks(gitea, 1)
    await first.until(lambda: first.landed)
    assert gitea.pulls[1].merged_at is not None
    await second.until(lambda: updated(gitea) == [1, 2])
    pass_checks(gitea, 2)
    await second.until(lambda: second.landed)
    assert gitea.pulls[2].merged_at is not None
    assert updated(gitea) == [1, 2]


async def test_a_proposal_whose_checks_never_pass_keeps_its_turn_for_half_an_hour(
    promotions: Promotions, site: GiteaSite
) -> None:
    gitea = site.fake
    pair = await two(promotions, gitea)
    for minutes in (0, 10, 19):
        await promotions.clock.advance(timedelta(minutes=minutes))
        for promotion in pair:
            await promotion.look()
        assert updated(gitea) == [1]
    await promotions.clock.advance(timedelta(minutes=2))
    for promotion in pair:
        await promotion.look()
    assert updated(gitea) == [1, 2]


async def test_one_that_a_gate_holds_again_gives_its_turn_away(promotions: Promotions, site: GiteaSite) -> None:
    gitea = site.fake
    gitea.blocks_outdated = True
    gitea.outage = lambda request: (
        (405, {"message": "not ready to merge: The head branch is behind the base branch"})
        if request.path.endswith("/merge")
        else None
    )
    first = await promotions.proposed(approval="auto", pr=True)
    others_go_on(gitea.repository)
    await first.until(lambda: updated(gitea) == [1])
    second = await promotions.proposed(environment=STAGING, approval="auto", pr=True)
    others_go_on(gitea.repository, "and on\n")
    await second.look()
    assert updated(gitea) == [1]
    first.answer(closed="error rate 5%")
    await first.look()
    await second.look()
    assert updated(gitea) == [1, 2]
