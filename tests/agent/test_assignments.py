"""A pull request gets its people and labels once, when it is opened, and keeps what people make of them."""

from __future__ import annotations

from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api.names import step_name
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal_agent.execution import status as statuses
from tests.agent.hosted import git_secret, hosted_step
from tests.agent.promotion_steps import BUNDLE_NAME, create, deploy, promotion_step, reached, start_agent, wake
from tests.agent.sites import EVERYWHERE, GiteaSite, Site
from tests.agent.without_server import Promotions
from tests.bundles.reading import condition
from tests.support.fake_gitea import FakeGitea, Request
from tests.support.names import DEV
from tests.support.world import World

LABEL = "release notes"


def asked(site: Site | FakeGitea, **fields: Any) -> JsonObject:
    """Return what every kind of host gives, with `fields` in the place of it."""
    teams = {} if site.provider == "gitlab" else {"teamReviewers": ["platform"]}
    return {"pullRequest": {"reviewers": ["alice"], **teams, "assignees": ["bob"], "labels": [LABEL], **fields}}


def given(site: Site) -> list[list[str]]:
    return [["alice"], [] if site.provider == "gitlab" else ["platform"], ["bob"]]


async def opened(world: World, site: Site | FakeGitea, git: JsonObject, **spec: Any) -> JsonObject:
    """Have a promotion wait for the merge of its pull request; returns its status."""
    await deploy(world)
    await world.apply(git_secret(site))
    await create(world, hosted_step(site, git=git, **spec))
    return await reached(world, "WaitingForMerge")


async def not_assigned(world: World) -> JsonObject | None:
    return condition(await world.get(PROMOTION_STEP, step_name(BUNDLE_NAME, DEV)), "NotAssigned")


@EVERYWHERE
async def test_people_and_labels_are_given_once_and_are_of_people_from_then_on(
    promotions: Promotions, site: Site
) -> None:
    promotion = await promotions.proposed(git=asked(site))
    assert site.people(1) == given(site)
    assert set(site.proposals()[1].labels) == {"kardinal", LABEL}
    assert promotion.status.proposal is not None
    assert promotion.status.proposal.assigned == 1
    assert promotion.condition("NotAssigned") is None

    site.take_off(1, label=LABEL)
    await promotion.look()
    promotions.restart()
    await promotion.look()
    assert site.people(1) == [[], [], []]
    assert site.proposals()[1].labels == ["kardinal"]
    site.merge(1)
    await promotion.go_on()
    assert promotion.landed


async def test_an_attempt_that_goes_on_with_a_pull_request_gives_it_nothing_again(
    promotions: Promotions, site: Site
) -> None:
    first = await promotions.proposed(git=asked(site))
    site.take_off(1, label=LABEL)
    kept = first.status.proposal
    again = promotions.begin(git=asked(site), attempt=2, status=statuses.restarted(2, kept))
    await again.go_on()
    assert again.waits
    assert again.status.pull_request is not None
    assert again.status.pull_request.number == 1
    assert again.status.proposal == kept
    assert site.people(1) == [[], [], []]


async def test_a_host_that_is_down_for_a_while_loses_no_reviewer(promotions: Promotions, site: GiteaSite) -> None:
    gitea = site.fake
    down = [True]

    def outage(request: Request) -> tuple[int, JsonObject] | None:
        broken = down[0] and request.path.endswith("/requested_reviewers")
        return (502, {"message": "bad gateway"}) if broken else None

    gitea.outage = outage
    promotion = promotions.begin(git=asked(site))
    await promotion.go_on()
    assert promotion.status.retry is not None
    assert "502 to reviewers" in promotion.status.retry.last_error
    promotions.restart()
    down[0] = False
    await promotion.until(lambda: promotion.waits)
    (pull,) = gitea.pulls.values()
    assert (pull.reviewers, pull.teams, pull.assignees) == (["alice"], ["platform"], ["bob"])
    assert promotion.condition("NotAssigned") is None


@EVERYWHERE
async def test_a_name_that_the_host_does_not_take_is_told_and_the_promotion_goes_on(world: World, site: Site) -> None:
    await start_agent(world)
    await opened(world, site, asked(site, reviewers=["nobody-here", "alice"], assignees=["bob", "no-one"]))
    assert site.people(1) == given(site)
    assert LABEL in site.proposals()[1].labels
    found = await not_assigned(world)
    assert found is not None
    assert found["status"] == "True"
    assert "of git.pullRequest: reviewers nobody-here (" in found["message"]
    assert "; assignees no-one (" in found["message"]
    await wake(world)
    (event,) = await world.events("NotAssigned")
    assert (event["type"], event["note"]) == ("Warning", found["message"])
    site.merge(1)
    await wake(world)
    await reached(world, "Verified")


async def test_a_token_that_may_not_set_labels_fails_nothing(promotions: Promotions, site: GiteaSite) -> None:
    refused = 403, {"message": "token does not have at least one of required scope(s)"}
    site.fake.outage = lambda request: refused if request.path == "/issues/1/labels" else None
    promotion = await promotions.proposed(git=asked(site))
    found = promotion.condition("NotAssigned")
    assert found is not None
    assert f"labels {LABEL} (" in found.message
    assert "write:issue" in found.message
    assert site.fake.pulls[1].reviewers == ["alice"]
    assert promotion.held[0] != "True"


@EVERYWHERE
async def test_a_pull_request_that_is_opened_as_a_draft_waits_for_a_person(promotions: Promotions, site: Site) -> None:
    promotion = await promotions.proposed(git={"pullRequest": {"draft": True}}, approval="auto", pr=True)
    assert "draft" in promotion.message
    title = site.proposals()[1].title
    assert title.startswith(site.draft_prefix)
    assert site.asked("merge") == []
    assert promotion.status.proposal is not None
    assert promotion.status.proposal.assigned is None
    site.make_ready(1)
    await promotion.until(lambda: promotion.landed)
    assert site.proposals()[1].title == title.removeprefix(site.draft_prefix)


async def test_labels_and_drafts_of_a_local_repository(world: World, repository: Any, reviewer: Any) -> None:
    made = promotion_step(repository, approval="pr-review")
    made["spec"]["git"] |= {"pullRequest": {"labels": [LABEL], "draft": True}}
    await start_agent(world)
    await deploy(world)
    await create(world, made)
    await reached(world, "WaitingForMerge")
    (found,) = await reviewer.list()
    assert (found.labels, found.draft) == (("kardinal", LABEL), True)
