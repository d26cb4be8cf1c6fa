"""Each answer of GitHub has one meaning for a promotion: when to retry, what to say, and how often it is done."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from kardinal.git import MergeConflict
from kardinal.objects.errors import KardinalError
from kardinal.scm import (
    AccessDenied,
    HeadMoved,
    HostUnavailable,
    MergeBlocked,
    NothingToMerge,
    PullRequestNotFound,
    PullRequests,
    RateLimited,
    RequestRefused,
    UnknownAnswer,
)
from tests.hosts.fakes.faults import Fault, Kind
from tests.hosts.fakes.github import TOKEN
from tests.hosts.github_host import GitHubHost
from tests.hosts.host import FILE, HEAD, new_pull_request
from tests.support.clock import VirtualClock

PULLS = r"/pulls$"
MERGE = r"/pulls/1/merge$"
ONE = r"/pulls/1$"
FORBIDDEN = {"message": "Resource not accessible by personal access token"}
SECONDARY = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}


@dataclass(frozen=True)
class Case:
    """One fault and what is to follow from it."""

    name: str
    method: str
    path: str
    error: type[KardinalError]
    transient: bool
    status: int = 0
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    kind: Kind = "answer"
    retry_after: float | None = None
    says: str = ""


OPENING = [
    Case("asked to wait", "POST", PULLS, RateLimited, True, 403, SECONDARY, {"Retry-After": "30"}, retry_after=30),
    Case("secondary limit", "POST", PULLS, RateLimited, True, 403, SECONDARY, retry_after=60),
    Case(
        "nothing remains",
        "POST",
        PULLS,
        RateLimited,
        True,
        403,
        {"message": "API rate limit exceeded for user ID 1."},
        {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772532120"},
        retry_after=120,
    ),
    Case("too many", "POST", PULLS, RateLimited, True, 429, None, {"Retry-After": "7"}, retry_after=7),
    Case("no permission", "POST", PULLS, AccessDenied, True, 403, FORBIDDEN, says="Pull requests: read and write"),
    Case("single sign-on", "POST", PULLS, AccessDenied, True, 403, {"message": "SAML enforcement"}, says="sign-on"),
    Case(
        "archived", "POST", PULLS, RequestRefused, False, 403, {"message": "Repository was archived"}, says="unarchive"
    ),
    Case("bad token", "POST", PULLS, AccessDenied, True, 401, {"message": "Bad credentials"}, says="valid one"),
    Case("broken", "POST", PULLS, HostUnavailable, True, 500),
    Case("bad gateway", "POST", PULLS, HostUnavailable, True, 502, "<html>"),
    Case("overloaded", "POST", PULLS, HostUnavailable, True, 503, None, {"Retry-After": "5"}, retry_after=5),
    Case("reset", "POST", PULLS, HostUnavailable, True, kind="reset"),
    Case("done, and the answer lost", "POST", PULLS, HostUnavailable, True, kind="lost"),
    Case(
        "moved", "POST", PULLS, RequestRefused, False, 307, None, {"Location": "https://evil.example/"}, says="git.url"
    ),
    Case("a teapot", "POST", PULLS, UnknownAnswer, True, 418),
    Case("no JSON", "POST", PULLS, UnknownAnswer, True, 201, "created"),
    Case(
        "branch not known yet",
        "POST",
        PULLS,
        HostUnavailable,
        True,
        422,
        {"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "head", "code": "invalid"}]},
        retry_after=1,
    ),
    Case(
        "no such base",
        "POST",
        PULLS,
        RequestRefused,
        False,
        422,
        {"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "base", "code": "invalid"}]},
        says="git.branch",
    ),
]


@pytest.mark.parametrize("case", OPENING, ids=lambda case: case.name)
async def test_opening_meets_a_fault_and_opens_one_pull_request_in_the_end(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock, case: Case
) -> None:
    github.server.faults.append(Fault(case.method, case.path, case.kind, case.status, case.headers, case.body))
    with pytest.raises(case.error) as raised:
        await github_pulls.open(new_pull_request())
    _as_expected(raised.value, case)
    moment.skip(case.retry_after or 0)
    opened = await github_pulls.open(new_pull_request())
    assert (opened.number, opened.labels) == (1, ("kardinal",))
    assert list(github.project.pulls) == [1]


MERGING = [
    Case(
        "base moved", "PUT", MERGE, HostUnavailable, True, 405, {"message": "Base branch was modified."}, retry_after=1
    ),
    Case("head moved", "PUT", MERGE, HeadMoved, True, 409, {"message": "Head branch was modified."}),
    Case("not yet", "PUT", MERGE, MergeBlocked, True, 405, {"message": "Pull Request is not mergeable"}),
    Case("conflict", "PUT", MERGE, MergeConflict, False, 405, {"message": "Merge conflict"}, says="Promote again"),
    Case(
        "method not allowed",
        "PUT",
        MERGE,
        RequestRefused,
        False,
        405,
        {"message": "Squash merges are not allowed on this repository."},
        says="git.mergeMethod",
    ),
    Case("no permission", "PUT", MERGE, AccessDenied, True, 403, FORBIDDEN, says="Contents: read and write"),
    Case("asked to wait", "PUT", MERGE, RateLimited, True, 403, SECONDARY, {"Retry-After": "3"}, retry_after=3),
    Case("broken", "PUT", MERGE, HostUnavailable, True, 500),
    Case("success, and nothing done", "PUT", MERGE, UnknownAnswer, True, kind="nothing", says="did not merge"),
    Case("not shown yet", "GET", ONE, PullRequestNotFound, True, 404, {"message": "Not Found"}, retry_after=1),
]


@pytest.mark.parametrize("case", MERGING, ids=lambda case: case.name)
async def test_merging_meets_a_fault_and_merges_once_in_the_end(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock, case: Case
) -> None:
    opened = await github_pulls.open(new_pull_request())
    before = github.tip("main")
    github.server.faults.append(Fault(case.method, case.path, case.kind, case.status, case.headers, case.body))
    with pytest.raises(case.error) as raised:
        await github_pulls.merge(opened.number, by="kardinal", expected_head=opened.head_commit)
    _as_expected(raised.value, case)
    assert github.tip("main") == before
    moment.skip(case.retry_after or 0)
    merged = await github_pulls.merge(opened.number, by="kardinal", expected_head=opened.head_commit)
    assert merged.merge_commit == github.tip("main")
    assert github.git("rev-list", "--count", f"{before}..main") == "2"  # the proposal and its merge commit


@pytest.mark.parametrize("kind", ["reset", "lost"])
async def test_a_merge_whose_connection_ends_is_done_once(
    github: GitHubHost, github_pulls: PullRequests, kind: Kind
) -> None:
    await github_pulls.open(new_pull_request())
    before = github.tip("main")
    github.server.faults.append(Fault("PUT", MERGE, kind, times=2))
    # aiohttp itself sends a PUT again on a new connection, which is as good as any second attempt.
    for _ in range(3):
        with suppress(HostUnavailable):
            await github_pulls.merge(1, by="kardinal")
    merged = await github_pulls.get(1)
    assert (merged.state, merged.merge_commit) == ("merged", github.tip("main"))
    assert github.git("rev-list", "--count", f"{before}..main") == "2"


def _as_expected(error: KardinalError, case: Case) -> None:
    assert (error.transient, error.retry_after) == (case.transient, case.retry_after)
    assert case.says in str(error)
    assert TOKEN not in str(error)


async def test_a_number_that_is_not_shown_counts_as_new_for_a_minute(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock
) -> None:
    for seconds, transient in ((0, True), (59, True), (2, False)):
        moment.skip(seconds)
        with pytest.raises(PullRequestNotFound) as missing:
            await github_pulls.get(9)
        assert missing.value.transient is transient
    assert len(github.server.requests("GET", "/pulls/9")) == 3


async def test_a_pull_request_that_was_answered_and_not_made_is_made_by_the_next_attempt(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    github.server.faults.append(Fault("POST", PULLS, "nothing"))
    with pytest.raises((PullRequestNotFound, HostUnavailable)) as missing:
        await github_pulls.open(new_pull_request())
    assert missing.value.transient
    assert not github.project.pulls
    assert (await github_pulls.open(new_pull_request())).state == "open"


async def test_a_close_that_was_answered_and_not_done_is_tried_again(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    await github_pulls.open(new_pull_request())
    github.server.faults.append(Fault("PATCH", ONE, "nothing"))
    with pytest.raises(UnknownAnswer, match="did not close"):
        await github_pulls.close(1, by="kardinal", comment="Superseded.")
    assert (await github_pulls.close(1, by="kardinal", comment="Superseded.")).state == "closed"
    assert len(github.project.pulls[1].comments) == 1


async def test_a_branch_without_changes_has_nothing_to_merge(github: GitHubHost, github_pulls: PullRequests) -> None:
    github.git("branch", "same", "main")
    with pytest.raises(NothingToMerge) as raised:
        await github_pulls.open(new_pull_request("same"))
    assert not raised.value.transient


async def test_required_checks_hold_a_merge_until_they_are_there(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    opened = await github_pulls.open(new_pull_request())
    github.require_status("main", "kardinal")
    with pytest.raises(MergeBlocked, match='Required status check "kardinal"'):
        await github_pulls.merge(1, by="kardinal")
    github.git("rev-parse", opened.head_commit or "")
    assert github.project.pulls[1].state == "open"


async def test_a_conflict_is_told_without_asking_for_the_merge(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request())
    github.add_commit("main", FILE, "mine\n")
    with pytest.raises(MergeConflict, match="conflicts with main"):
        await github_pulls.merge(1, by="kardinal")
    assert not github.server.requests("PUT")


async def test_while_the_host_asks_to_wait_it_is_not_asked(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock
) -> None:
    github.server.faults.append(Fault("POST", PULLS, status=403, headers={"Retry-After": "30"}, body=SECONDARY))
    for _ in range(5):
        with pytest.raises(RateLimited):
            await github_pulls.open(new_pull_request())
    assert len(github.server.exchanges) == 1
    moment.skip(30)
    assert (await github_pulls.open(new_pull_request())).head == HEAD
