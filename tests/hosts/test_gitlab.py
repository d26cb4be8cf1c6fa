"""Behaviour of GitLab alone: the ways a project merges, answers to a merge, approvals, statuses and webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kardinal.git import MergeConflict
from kardinal.objects.errors import KardinalError
from kardinal.scm import (
    PROVIDERS,
    AccessDenied,
    BehindBase,
    CommitStatus,
    HeadMoved,
    HostUnavailable,
    MergeBlocked,
    NothingToMerge,
    PullRequestNotFound,
    PullRequests,
    RateLimited,
    RequestRefused,
    UnknownAnswer,
    WebhookRejected,
)
from tests.hosts.fakes.faults import Fault, Kind
from tests.hosts.fakes.gitlab import TOKEN as ROBOT_TOKEN
from tests.hosts.gitlab_host import FastForwardGitLabHost, GitLabHost
from tests.hosts.host import FILE, HEAD, new_pull_request
from tests.support.clock import VirtualClock
from tests.support.secret_values import secret_value

MERGE = r"/merge_requests/1/merge$"
REQUESTS = r"/merge_requests$"


@pytest.fixture
async def gitlab(tmp_path: Path, moment: VirtualClock) -> AsyncIterator[GitLabHost]:
    """Yield a fake GitLab, whose time the test owns, with the branch of a proposal."""
    made = GitLabHost(tmp_path, clock=moment)
    try:
        made.start()
        made.propose()
        yield made
    finally:
        await made.close()


@pytest.fixture
async def requests(gitlab: GitLabHost) -> PullRequests:
    """Return its merge requests as kardinal's user sees them."""
    return await gitlab.connect(clock=gitlab.clock)


@pytest.fixture
async def linear(tmp_path: Path) -> AsyncIterator[FastForwardGitLabHost]:
    """Yield a fake GitLab that merges by fast-forward, in the time of the machine."""
    made = FastForwardGitLabHost(tmp_path)
    try:
        made.start()
        made.propose()
        yield made
    finally:
        await made.close()


@dataclass(frozen=True)
class Case:
    """One answer of GitLab and what is to follow from it."""

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


MERGING = [
    Case("401", "PUT", MERGE, AccessDenied, True, 401, {"message": "401 Unauthorized"}, says="allowed to merge"),
    Case("403", "PUT", MERGE, AccessDenied, True, 403, {"message": "403 Forbidden"}, says="role Developer"),
    Case("scope", "PUT", MERGE, AccessDenied, True, 403, {"error": "insufficient_scope"}, says="scope api"),
    Case("405", "PUT", MERGE, MergeBlocked, True, 405, {"message": "405 Method Not Allowed"}, says="mergeable"),
    Case("406", "PUT", MERGE, MergeConflict, False, 406, {"message": "Branch cannot be merged"}, says="Promote again"),
    Case("409", "PUT", MERGE, HeadMoved, True, 409, {"message": "SHA does not match HEAD of source branch"}),
    Case("422", "PUT", MERGE, MergeBlocked, True, 422, {"message": "Branch cannot be merged"}, retry_after=2),
    Case("429", "PUT", MERGE, RateLimited, True, 429, None, {"Retry-After": "9"}, retry_after=9),
    Case("500", "PUT", MERGE, HostUnavailable, True, 500, {"message": "500 Internal Server Error"}),
    Case("502", "PUT", MERGE, HostUnavailable, True, 502, "<html>"),
    Case("nothing done", "PUT", MERGE, UnknownAnswer, True, kind="nothing", says="did not merge"),
    Case("a teapot", "PUT", MERGE, UnknownAnswer, True, 418),
]


@pytest.mark.parametrize("case", MERGING, ids=lambda case: case.name)
async def test_each_answer_to_a_merge_has_its_own_meaning(
    gitlab: GitLabHost, requests: PullRequests, moment: VirtualClock, case: Case
) -> None:
    opened = await requests.open(new_pull_request())
    before = gitlab.tip("main")
    gitlab.server.faults.append(Fault(case.method, case.path, case.kind, case.status, case.headers, case.body))
    with pytest.raises(case.error) as raised:
        await requests.merge(1, by="kardinal", expected_head=opened.head_commit)
    assert (raised.value.transient, raised.value.retry_after) == (case.transient, case.retry_after)
    assert case.says in str(raised.value)
    assert ROBOT_TOKEN not in str(raised.value)
    assert gitlab.tip("main") == before
    moment.skip(case.retry_after or 0)
    merged = await requests.merge(1, by="kardinal", expected_head=opened.head_commit)
    assert merged.merge_commit == gitlab.tip("main")


OPENING = [
    Case("exists", "POST", REQUESTS, UnknownAnswer, True, 409, {"message": ["Another open merge request: !1"]}),
    Case("branch not known yet", "GET", "/compare$", HostUnavailable, True, 404, {"message": "404 Ref Not Found"}),
    Case("lost", "POST", REQUESTS, HostUnavailable, True, kind="lost"),
    Case("reset", "POST", REQUESTS, HostUnavailable, True, kind="reset"),
    Case("forbidden", "POST", REQUESTS, AccessDenied, True, 403, {"message": "403 Forbidden"}, says="role Developer"),
]


@pytest.mark.parametrize("case", OPENING, ids=lambda case: case.name)
async def test_opening_meets_a_fault_and_opens_one_merge_request_in_the_end(
    gitlab: GitLabHost, requests: PullRequests, case: Case
) -> None:
    gitlab.server.faults.append(Fault(case.method, case.path, case.kind, case.status, case.headers, case.body))
    with pytest.raises(case.error) as raised:
        await requests.open(new_pull_request())
    assert raised.value.transient is case.transient
    assert case.says in str(raised.value)
    opened = await requests.open(new_pull_request())
    assert (opened.number, opened.labels) == (1, ("kardinal",))
    assert list(gitlab.project.requests) == [1]


async def test_a_merge_whose_answer_is_lost_is_done_once(gitlab: GitLabHost, requests: PullRequests) -> None:
    await requests.open(new_pull_request())
    before = gitlab.tip("main")
    gitlab.server.faults.append(Fault("PUT", MERGE, "lost"))
    merged = await requests.merge(1, by="kardinal")
    assert (merged.state, merged.merge_commit) == ("merged", gitlab.tip("main"))
    assert gitlab.git("rev-list", "--count", "--first-parent", f"{before}..main") == "1"


async def test_a_branch_that_was_merged_is_deleted(gitlab: GitLabHost, requests: PullRequests) -> None:
    await requests.open(new_pull_request())
    await requests.merge(1, by="kardinal")
    assert gitlab.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main"]


async def test_a_branch_without_commits_of_its_own_opens_nothing(gitlab: GitLabHost, requests: PullRequests) -> None:
    gitlab.git("branch", "same", "main")
    with pytest.raises(NothingToMerge):
        await requests.open(new_pull_request("same"))
    assert not gitlab.project.requests


async def test_a_project_in_a_subgroup_is_named_by_its_escaped_path(gitlab: GitLabHost, requests: PullRequests) -> None:
    assert (await requests.access()).default_branch == "main"
    assert gitlab.server.requests("GET")[0].path.endswith("/projects/acme/teams/config")  # decoded by the server
    gitlab.url = gitlab.url.replace("/teams/", "/")
    with pytest.raises(AccessDenied, match=r"git\.url"):
        await (await gitlab.connect()).access()


async def test_a_merge_request_from_a_fork_is_never_taken_for_ours(gitlab: GitLabHost, requests: PullRequests) -> None:
    gitlab.project.open(source=HEAD, target="main", title="Mine", description="", by="mallory", fork=99)
    assert await requests.find(HEAD, base="main") is None
    assert await requests.list() == []
    assert (await requests.open(new_pull_request())).number == 2


async def test_a_squashed_merge_lands_with_the_squashed_commit(gitlab: GitLabHost, requests: PullRequests) -> None:
    gitlab.add_commit(HEAD, "NOTES", "a reviewer's\n")
    await requests.open(new_pull_request())
    merged = await requests.merge(1, by="kardinal", method="squash")
    assert merged.merge_commit == gitlab.project.requests[1].squash_commit_sha
    assert merged.merge_commit != gitlab.tip("main")
    assert gitlab.git("merge-base", "--is-ancestor", merged.merge_commit or "", "main") == ""
    assert gitlab.content(merged.merge_commit or "") == "v2"


async def test_a_way_to_merge_that_the_project_does_not_have_is_refused_before_it_is_asked_for(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    gitlab.project.squash_option = "never"
    await requests.open(new_pull_request())
    for method in ("rebase", "squash"):
        with pytest.raises(RequestRefused, match=r"git\.mergeMethod"):
            await requests.merge(1, by="kardinal", method=method)
    assert not gitlab.server.requests("PUT", "/merge")
    assert (await requests.access()).merge_methods == {"merge"}
    gitlab.project.squash_option = "always"
    assert (await requests.access()).merge_methods == {"squash"}


async def test_a_merge_train_is_not_passed_by(gitlab: GitLabHost, requests: PullRequests) -> None:
    gitlab.project.merge_trains = True
    opened = await requests.open(new_pull_request())
    with pytest.raises(MergeBlocked, match=r"merge train of main.*Add it to the train") as blocked:
        await requests.merge(1, by="kardinal", expected_head=opened.head_commit)
    assert blocked.value.blocked
    assert not gitlab.server.requests("PUT")
    await gitlab.merge(1, None)
    assert (await requests.merge(1, by="kardinal")).state == "merged"


async def test_blocked_merge_says_why(gitlab: GitLabHost, requests: PullRequests) -> None:
    await requests.open(new_pull_request())
    gitlab.require_status("main", "kardinal")
    with pytest.raises(MergeBlocked, match="ci_must_pass") as blocked:
        await requests.merge(1, by="kardinal")
    assert blocked.value.transient


async def test_a_conflict_is_told_without_asking_for_the_merge(gitlab: GitLabHost, requests: PullRequests) -> None:
    await requests.open(new_pull_request())
    gitlab.add_commit("main", FILE, "mine\n")
    with pytest.raises(MergeConflict, match="conflicts with main"):
        await requests.merge(1, by="kardinal")
    assert not gitlab.server.requests("PUT")


async def test_a_branch_behind_its_base_is_rebased_by_the_host(linear: FastForwardGitLabHost) -> None:
    requests = await linear.connect()
    opened = await requests.open(new_pull_request())
    linear.add_commit("main", "README.md", "others went on\n")
    before = linear.tip("main")
    assert (await requests.get(1)).behind
    with pytest.raises(BehindBase):
        await requests.merge(1, by="kardinal", method="rebase", expected_head=opened.head_commit)
    await requests.bring_up_to_date(1, expected_head=opened.head_commit)
    with pytest.raises(MergeBlocked, match="is being rebased"):
        await requests.bring_up_to_date(1)
    rebased = await requests.get(1)
    assert not rebased.behind
    merged = await requests.merge(1, by="kardinal", method="rebase", expected_head=rebased.head_commit)
    assert merged.merge_commit == linear.tip("main")
    assert linear.git("rev-parse", "main^") == before
    assert (linear.content("main"), linear.content("main", "README.md")) == ("v2", "others went on")


async def test_commit_added_during_a_rebase_is_not_merged(linear: FastForwardGitLabHost) -> None:
    requests = await linear.connect()
    opened = await requests.open(new_pull_request())
    before = linear.add_commit("main", "README.md", "others went on\n")
    rebase = linear.project.rebase

    def rebase_and_add(iid: int) -> None:
        linear.add_commit(HEAD, "NOTES", "wait\n")
        rebase(iid)

    linear.project.rebase = rebase_and_add  # type: ignore[method-assign]
    await requests.bring_up_to_date(1, expected_head=opened.head_commit)
    with pytest.raises(HeadMoved):
        await requests.merge(1, by="kardinal", expected_head=opened.head_commit)
    assert linear.tip("main") == before
    assert linear.content(HEAD, "NOTES") == "wait"


async def test_approvals_have_the_time_of_the_note_where_the_host_does_not_say_it(
    gitlab: GitLabHost, requests: PullRequests, moment: VirtualClock
) -> None:
    await requests.open(new_pull_request())
    moment.skip(60)
    gitlab.review(1, "bob", "approve")
    moment.skip(60)
    gitlab.review(1, "alice", "approve")
    gitlab.comment_by_person(1, "approved this merge request")  # by alice, and no note of the host's
    said = await requests.approvals(1)
    gitlab.project.says_when_approved = False
    assert await requests.approvals(1) == said
    assert [approval.by for approval in said] == ["bob", "alice"]
    assert (said[1].at - said[0].at).total_seconds() == 60


async def test_a_second_pending_is_not_sent_and_one_that_is_refused_is_no_failure(
    gitlab: GitLabHost, requests: PullRequests
) -> None:
    commit = gitlab.tip(HEAD)
    pending = CommitStatus("kardinal/shop/prod", "pending", "gate business-hours is closed")
    assert await requests.set_status(commit, pending)
    assert not await requests.set_status(commit, CommitStatus("kardinal/shop/prod", "pending", "another gate"))
    assert len(gitlab.server.requests("POST", "/statuses/")) == 1
    # The list was read before another program wrote the same.
    gitlab.server.faults.append(Fault("GET", "/statuses$", status=200, body=[]))
    assert not await requests.set_status(commit, pending)
    assert await requests.set_status(commit, CommitStatus("kardinal/shop/prod", "success", "x" * 400))
    (done,) = (await requests.statuses(commit)).values()
    assert (done.state, len(done.description)) == ("success", 255)
    assert await requests.set_status(commit, pending)
    assert (await requests.statuses(commit))["kardinal/shop/prod"] == pending


async def test_a_number_that_is_not_shown_counts_as_new_for_a_minute(
    gitlab: GitLabHost, requests: PullRequests, moment: VirtualClock
) -> None:
    for seconds, transient in ((0, True), (61, False)):
        moment.skip(seconds)
        with pytest.raises(PullRequestNotFound) as missing:
            await requests.get(9)
        assert missing.value.transient is transient


async def test_a_user_name_and_password_are_sent_as_a_token(gitlab: GitLabHost) -> None:
    gitlab.values = {"username": "kardinal", "password": f"{ROBOT_TOKEN}\n"}
    assert (await (await gitlab.connect()).access()).push
    gitlab.project.access_level = 20
    access = await (await gitlab.connect()).access()
    assert (access.read, access.push) == (True, False)


TOKEN = secret_value("webhook").encode()
KEY = b"0123456789abcdef0123456789abcdef"
SIGNING = b"whsec_" + base64.b64encode(KEY)
PAYLOAD = {
    "object_kind": "merge_request",
    "project": {"git_http_url": "https://gitlab.com/acme/teams/config.git"},
    "object_attributes": {"iid": 7, "source_branch": HEAD, "last_commit": {"id": "a" * 40}, "action": "merge"},
}
BODY = json.dumps(PAYLOAD).encode()


def _signed(body: bytes = BODY, *, key: bytes = KEY, moment: str = "1772532000") -> dict[str, str]:
    signature = hmac.new(key, f"delivery-1.{moment}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": "delivery-1",
        "webhook-timestamp": moment,
        "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        "X-Gitlab-Event": "Merge Request Hook",
    }


def test_a_delivery_with_the_token_or_a_signature_says_what_it_is_about() -> None:
    parse = PROVIDERS["gitlab"].parse_webhook
    assert parse is not None
    several = _signed() | {"webhook-signature": f"v1,AAAA {_signed()['webhook-signature']} v2,x"}
    for headers, secret in (({"x-gitlab-token": TOKEN.decode()}, TOKEN), (_signed(), SIGNING), (several, SIGNING)):
        delivery = parse(headers, BODY, secret)
        assert (delivery.number, delivery.branch, delivery.commit) == (7, HEAD, "a" * 40)
        assert delivery.repository == "https://gitlab.com/acme/teams/config.git"
    push = {"object_kind": "push", "ref": "refs/heads/main", "after": "b" * 40, "project": {}}
    delivery = parse({"X-Gitlab-Token": TOKEN.decode()}, json.dumps(push).encode(), TOKEN)
    assert (delivery.number, delivery.branch, delivery.commit) == (None, "main", "b" * 40)
    for status, checked in (("running", ()), ("failed", ("d" * 40, HEAD))):
        attributes = {"ref": HEAD, "sha": "d" * 40, "status": status}
        ended = {"object_kind": "pipeline", "object_attributes": attributes}
        delivery = parse({"X-Gitlab-Token": TOKEN.decode()}, json.dumps(ended).encode(), TOKEN)
        assert (delivery.branch, delivery.checked) == ("", checked)
    note = {"object_kind": "note", "merge_request": {"iid": 8, "source_branch": HEAD}, "object_attributes": {"id": 1}}
    assert parse({"X-Gitlab-Token": TOKEN.decode()}, json.dumps(note).encode(), TOKEN).number == 8


def test_a_delivery_that_is_not_from_the_host_is_refused() -> None:
    parse = PROVIDERS["gitlab"].parse_webhook
    assert parse is not None
    wrong: list[tuple[dict[str, str], bytes, bytes]] = [
        ({}, BODY, TOKEN),
        ({"X-Gitlab-Token": TOKEN.decode()[:-1]}, BODY, TOKEN),
        ({"X-Gitlab-Token": "é"}, BODY, TOKEN),
        ({"X-Gitlab-Token": ""}, BODY, b""),
        (_signed(), BODY + b" ", SIGNING),
        (_signed(key=b"another"), BODY, SIGNING),
        (_signed() | {"webhook-timestamp": "1772532001"}, BODY, SIGNING),
        (_signed() | {"webhook-id": "delivery-2"}, BODY, SIGNING),
        (_signed(key=b""), BODY, b"whsec_"),
        (_signed(key=b""), BODY, b"whsec_%%%"),
        (_signed() | {"webhook-signature": "v1,é"}, BODY, SIGNING),
        (_signed() | {"webhook-signature": "v1"}, BODY, SIGNING),
        # A wrong signature is not rescued by a right token.
        ({"webhook-signature": "v1,AAAA", "X-Gitlab-Token": TOKEN.decode()}, BODY, TOKEN),
    ]
    for headers, body, secret in wrong:
        with pytest.raises(WebhookRejected) as rejected:
            parse(headers, body, secret)
        assert rejected.value.status == 401
    with pytest.raises(WebhookRejected) as rejected:
        parse({"X-Gitlab-Token": TOKEN.decode()}, b"[" * 100_000, TOKEN)
    assert rejected.value.status == 413
