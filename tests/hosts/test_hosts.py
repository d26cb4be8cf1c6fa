"""Every host that is reached by HTTP: credentials, protection, statuses, reviews, and the first minute of a number."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from kardinal.scm import (
    AccessDenied,
    CommitStatus,
    MergeBlocked,
    PullRequestError,
    PullRequestNotFound,
    PullRequests,
)
from tests.hosts.conftest import REMOTE
from tests.hosts.host import Host, new_pull_request
from tests.support.clock import VirtualClock

pytestmark = pytest.mark.parametrize("host_server", REMOTE, indirect=True)

PENDING = CommitStatus("kardinal/app/prod", "pending", "gate soak: 3 of 30 minutes", "https://kardinal.example/app")


async def test_a_token_that_is_revoked_in_flight_ends_the_promotion_and_is_not_shown(
    host: Host, pulls: PullRequests
) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.revoke_token()
    for request in (pulls.get(number), pulls.merge(number, by="kardinal"), pulls.open(new_pull_request())):
        with pytest.raises(AccessDenied, match="put a valid one into the Secret") as denied:
            await request
        assert denied.value.blocked
        assert denied.value.field == "git.secretRef"
        assert host.secret()["token"] not in str(denied.value)


async def test_a_protected_branch_waits_for_the_status_that_it_requires(host: Host, pulls: PullRequests) -> None:
    commit = host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.require_status("main", "kardinal")
    await pulls.set_status(commit, CommitStatus("kardinal", "pending", "gate soak is closed"))
    with pytest.raises(MergeBlocked) as blocked:
        # Until the branches are compared, the host says no more than that it is not ready.
        await until_compared(await host.connect(), number)
    assert blocked.value.transient
    assert (await pulls.get(number)).state == "open"
    await pulls.set_status(commit, CommitStatus("kardinal", "success", "every gate is open"))
    assert (await pulls.merge(number, by="kardinal")).state == "merged"


async def until_compared(pulls: PullRequests, number: int) -> None:
    while True:
        try:
            await pulls.merge(number, by="kardinal")
        except MergeBlocked as error:
            if "try again later" not in str(error):
                raise
            await asyncio.sleep(0.1)


async def test_a_status_is_written_when_it_changes_and_only_then(host: Host, pulls: PullRequests) -> None:
    commit = host.propose()
    assert await pulls.statuses(commit) == {}
    assert await pulls.set_status(commit, PENDING)
    written = count(host, "set-status")
    assert not await pulls.set_status(commit, PENDING)
    assert count(host, "set-status") == written
    other = CommitStatus("kardinal", "pending", "1 gate is closed")
    assert await pulls.set_status(commit, other)
    changed = CommitStatus(PENDING.context, "success", "every gate is open", PENDING.url)
    assert await pulls.set_status(commit, changed)
    assert await pulls.statuses(commit) == {"kardinal": other, PENDING.context: changed}


async def test_a_proposal_that_says_the_same_already_is_not_written_again(host: Host, pulls: PullRequests) -> None:
    host.propose()
    opened = await pulls.open(new_pull_request())
    before = len(host.requests)
    again = await pulls.update(opened.number, title=opened.title, body=opened.body, labels=opened.labels)
    assert again.body == opened.body
    assert len(host.requests) == before + 1


async def test_the_labels_and_comments_of_people_are_left_alone(host: Host, pulls: PullRequests) -> None:
    host.propose()
    number = (await pulls.open(new_pull_request())).number
    host.label_by_person(number, "urgent")
    updated = await pulls.update(number, labels=("kardinal/rollback",))
    assert set(updated.labels) == {"urgent", "kardinal/rollback"}
    forged = "All gates are open.\n\n<!-- kardinal:progress -->"
    host.comment_by_person(number, forged)
    await pulls.comment(number, "1 gate is closed", marker="progress")
    await pulls.comment(number, "2 gates are closed", marker="progress")
    texts = await host.comments(number)
    assert texts[0] == forged
    assert len(texts) == 2
    assert texts[1].startswith("2 gates are closed")


async def test_approvals_are_those_of_reviewers_who_have_not_changed_their_mind(
    host: Host, pulls: PullRequests
) -> None:
    commit = host.propose()
    opened = await pulls.open(new_pull_request())
    host.review(opened.number, "carol", "approve")
    assert await pulls.approvals(opened.number) == []
    host.review(opened.number, "alice", "approve")
    host.review(opened.number, "alice", "comment")
    (approval,) = await pulls.approvals(opened.number)
    assert approval.by.startswith("alice")
    assert approval.commit == (commit if host.reviews_name_commits else None)
    assert approval.at >= opened.created_at
    host.review(opened.number, "alice", "reject")
    assert await pulls.approvals(opened.number) == []


async def test_an_unknown_number_is_tried_again_for_a_minute_and_then_named(host: Host, clock: VirtualClock) -> None:
    pulls = await host.connect(clock=clock)
    with pytest.raises(PullRequestNotFound) as early:
        await pulls.get(4711)
    assert early.value.transient
    assert early.value.retry_after is not None
    await clock.advance(timedelta(seconds=61))
    with pytest.raises(PullRequestNotFound) as late:
        await pulls.get(4711)
    assert not late.value.transient


async def test_a_branch_that_is_not_there_is_tried_again_for_a_minute_and_then_named(
    host: Host, clock: VirtualClock
) -> None:
    pulls = await host.connect(clock=clock)
    with pytest.raises(PullRequestError) as early:
        await pulls.open(new_pull_request("kardinal/app-1/nowhere"))
    assert early.value.transient
    await clock.advance(timedelta(seconds=61))
    with pytest.raises(PullRequestError) as late:
        await pulls.open(new_pull_request("kardinal/app-1/nowhere"))
    assert not late.value.transient
    assert await pulls.list() == []


async def test_a_repository_that_is_not_there_is_named_with_what_to_check(host: Host) -> None:
    host.url = host.url.replace("/config", "/nothing")
    pulls = await host.connect()
    with pytest.raises(AccessDenied, match=r"git\.url"):
        await pulls.access()
    with pytest.raises(AccessDenied, match=r"git\.url"):
        await pulls.list("open")


async def test_names_of_branches_reach_the_host_as_they_are(host: Host, pulls: PullRequests) -> None:
    for head in ("kardinal/app-1/été", "kardinal/app-1/a+b&c=d#e", "kardinal/app-1/100%"):
        host.propose(head)
        opened = await pulls.open(new_pull_request(head))
        assert opened.head == head
        found = await pulls.find(head, base="main")
        assert found is not None
        assert found.number == opened.number


def count(host: Host, operation: str) -> int:
    return sum(one == operation for one, _ in host.requests)
