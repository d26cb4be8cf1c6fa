"""Pull requests get reviewers, teams, assignees and labels; what a host does not take keeps nothing else back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kardinal.scm import Assignments, MergeBlocked, PullRequests, RequestRefused, UnsupportedProvider
from tests.hosts.github_host import GitHubHost
from tests.hosts.gitlab_host import GitLabHost
from tests.hosts.host import Host, new_pull_request, patient

HOSTILE = ("../../admin?sudo=root#", "alice/../bob", "alice\r\nX-Sudo: root", "a&username=bob", "..")
"""Names that would reach another path, header or parameter if they were not escaped."""


def of_all(host: Host) -> Assignments:
    """Return everything that the provider knows, of people that the host knows."""
    known = host.provider.capabilities.pull_request_fields
    return Assignments(
        reviewers=(host.login("alice"),) if "reviewers" in known else (),
        team_reviewers=(host.make_team("platform"),) if "teamReviewers" in known else (),
        assignees=(host.login("alice"),) if "assignees" in known else (),
        labels=("gitops", "release notes") if "labels" in known else (),
    )


def fields(wanted: Assignments) -> dict[str, set[str]]:
    """Return what is wanted as a host shows it: teams without their organisation."""
    named = {
        "reviewers": wanted.reviewers,
        "teamReviewers": tuple(name.rpartition("/")[2] for name in wanted.team_reviewers),
        "assignees": wanted.assignees,
        "labels": (*wanted.labels, "kardinal"),
    }
    return {name: set(names) for name, names in named.items() if names}


async def shown(host: Host, number: int) -> dict[str, set[str]]:
    return {name: set(names) for name, names in (await host.assigned(number)).items() if names}


async def test_people_and_labels_are_added_and_a_program_that_comes_back_adds_nothing(
    host: Host, pulls: PullRequests
) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    wanted = of_all(host)
    assert list(await pulls.assign(number, wanted)) == []
    assert await shown(host, number) == fields(wanted)
    told = await host.told(number)
    assert list(await patient(await host.connect()).assign(number, wanted)) == []
    assert await shown(host, number) == fields(wanted)
    assert await host.told(number) == told


async def test_a_name_that_the_host_does_not_know_keeps_no_other_one_back(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    wanted = of_all(host)
    stranger = host.make_stranger()
    more = replace(
        wanted,
        reviewers=("nobody-here", *wanted.reviewers, stranger) if wanted.reviewers else (),
        team_reviewers=("nothing-here", *wanted.team_reviewers, "other/platform") if wanted.team_reviewers else (),
        assignees=("nobody-here", *wanted.assignees, stranger) if wanted.assignees else (),
    )
    refused = await pulls.assign(number, more)
    assert await shown(host, number) == fields(wanted)
    expected = {("reviewers", "nobody-here"), ("reviewers", stranger)} if wanted.reviewers else set()
    expected |= {("assignees", "nobody-here"), ("assignees", stranger)} if wanted.assignees else set()
    if wanted.team_reviewers:
        expected |= {("teamReviewers", "nothing-here"), ("teamReviewers", "other/platform")}
    assert {(each.field, each.name) for each in refused} == expected
    assert all(each.reason for each in refused)


async def test_people_whom_others_have_added_stay(host: Host, pulls: PullRequests) -> None:
    if "reviewers" not in host.provider.capabilities.pull_request_fields:
        pytest.skip("the provider knows no users")
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    alice = host.login("alice")
    carol = host.login("carol")
    await pulls.assign(number, Assignments(reviewers=(carol,), assignees=(alice,), labels=("one",)))
    await pulls.assign(number, Assignments(reviewers=(alice,), assignees=(alice,), labels=("two",)))
    found = await shown(host, number)
    assert found["reviewers"] == {alice, carol}
    assert found["assignees"] == {alice}
    assert found["labels"] == {"kardinal", "one", "two"}


async def test_reviewer_who_has_answered_is_not_asked_again(host: Host, pulls: PullRequests) -> None:
    if "reviewers" not in host.provider.capabilities.pull_request_fields:
        pytest.skip("the provider knows no users")
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    wanted = Assignments(reviewers=(host.login("alice"),))
    await pulls.assign(number, wanted)
    host.review(number, "alice", "approve")
    (approval,) = await pulls.approvals(number)
    told = await host.told(number)
    assert list(await pulls.assign(number, wanted)) == []
    assert await pulls.approvals(number) == [approval]
    assert await host.told(number) == told


async def test_a_hostile_name_reaches_nothing_else(host: Host, pulls: PullRequests) -> None:
    if "reviewers" not in host.provider.capabilities.pull_request_fields:
        pytest.skip("the provider knows no users")
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    before = await shown(host, number)
    refused = await pulls.assign(number, Assignments(reviewers=HOSTILE, assignees=HOSTILE))
    assert {(each.field, each.name) for each in refused} == {
        (field, name) for field in ("reviewers", "assignees") for name in HOSTILE
    }
    assert await shown(host, number) == before


async def test_a_proposal_that_is_opened_as_a_draft_is_one_until_a_person_says_otherwise(
    host: Host, pulls: PullRequests
) -> None:
    host.propose()
    new = replace(new_pull_request(), draft=True)
    opened = await pulls.open(new)
    assert opened.draft
    assert opened.title.endswith(new.title)
    before = host.tip("main")
    with pytest.raises(MergeBlocked):
        await (await host.connect()).merge(opened.number, by="kardinal")
    assert host.tip("main") == before
    assert (await patient(await host.connect()).open(new)).number == opened.number
    assert (await pulls.get(opened.number)).draft


async def test_github_does_not_have_the_author_review(github: GitHubHost, github_pulls: PullRequests) -> None:
    number = (await github_pulls.open(new_pull_request())).number
    author = github.project.pulls[number].author
    (refused,) = await github_pulls.assign(number, Assignments(reviewers=(author, "Alice")))
    assert (refused.name, refused.reason) == (author, "the author of a pull request cannot review it")
    assert github.project.pulls[number].requested_reviewers == ["alice"]


async def test_a_token_without_the_permission_is_told_of_once_for_all_names(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    number = (await github_pulls.open(new_pull_request())).number
    github.server.exchanges.clear()
    identity = next(iter(github.server.identities.values()))
    identity.permissions["pull_requests"] = "read"
    refused = await github_pulls.assign(number, Assignments(reviewers=("alice", "bob"), labels=("one", "two")))
    assert [(each.field, each.name) for each in refused] == [
        ("reviewers", "alice"),
        ("reviewers", "bob"),
        ("labels", "one"),
        ("labels", "two"),
    ]
    assert all("Pull requests: read and write" in each.reason for each in refused)
    assert len(github.server.requests("POST")) == 2


async def test_github_without_drafts_says_which_field_to_leave_out(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    github.project.has_drafts = False
    with pytest.raises(RequestRefused, match=r"Leave git\.pullRequest\.draft out"):
        await github_pulls.open(replace(new_pull_request(), draft=True))
    assert github.project.pulls == {}


async def test_gitlab_that_takes_one_alone_is_told_of(host: Host, pulls: PullRequests) -> None:
    if not isinstance(host, GitLabHost):
        pytest.skip("GitLab alone has plans with one reviewer")
    host.project.takes_several = False
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    refused = await pulls.assign(number, Assignments(reviewers=("alice", "mallory", "bob")))
    assert {each.name for each in refused} == {"mallory", "bob"}
    assert all("GitLab Free takes one alone" in each.reason for each in refused)
    assert (await host.assigned(number))["reviewers"] == ["alice"]
    with pytest.raises(UnsupportedProvider, match="teamReviewers"):
        await pulls.assign(number, Assignments(team_reviewers=("platform",)))
