"""Behaviour of GitHub alone: its addresses, conditional requests, reviews, statuses, merge queues and webhooks."""

from __future__ import annotations

import hashlib
import hmac
import json

import pytest

from kardinal.git import MergeConflict
from kardinal.scm import (
    PROVIDERS,
    AccessDenied,
    BehindBase,
    CommitStatus,
    HeadMoved,
    MergeBlocked,
    MergeMethod,
    PullRequests,
    RequestRefused,
    ReviewApproval,
    UnknownAnswer,
    WebhookRejected,
)
from kardinal.scm.github import api_of
from tests.hosts.fakes.faults import Fault
from tests.hosts.fakes.github import TOKEN
from tests.hosts.fakes.github_state import Ruleset
from tests.hosts.github_host import GitHubHost
from tests.hosts.host import FILE, HEAD, new_pull_request
from tests.support.clock import VirtualClock
from tests.support.secret_values import secret_value

SECRET = secret_value("webhook").encode()


@pytest.mark.parametrize(
    ("origin", "rest", "graphql"),
    [
        ("https://github.com", "https://api.github.com", "https://api.github.com"),
        ("https://acme.ghe.com", "https://api.acme.ghe.com", "https://api.acme.ghe.com"),
        ("https://git.acme.example:8443", "https://git.acme.example:8443/api/v3", "https://git.acme.example:8443/api"),
        (
            "https://github.com.evil.example",
            "https://github.com.evil.example/api/v3",
            "https://github.com.evil.example/api",
        ),
    ],
)
def test_the_api_of_a_repository_is_at_its_own_host(origin: str, rest: str, graphql: str) -> None:
    assert api_of(origin) == (rest, graphql)


async def test_a_list_that_did_not_change_costs_nothing_of_the_quota(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    await github_pulls.open(new_pull_request())
    first = await github_pulls.list("open")
    remaining = github.server.remaining
    for _ in range(5):
        assert await github_pulls.list("open") == first
    assert github.server.remaining == remaining
    assert [one.status for one in github.server.requests("GET", "/pulls")][-5:] == [304] * 5
    await github.close_by_person(1)
    assert await github_pulls.list("open") == []


async def test_a_list_of_many_pages_is_read_whole(github: GitHubHost, github_pulls: PullRequests) -> None:
    for index in range(230):
        github.git("branch", f"branch-{index}", HEAD)
        github.project.open(head=f"branch-{index}", base="main", title="Many", by="alice")
    assert [one.number for one in await github_pulls.list("open")] == list(range(1, 231))
    assert len(github.server.requests("GET", "/pulls")) == 3


async def test_a_pull_request_from_a_fork_is_never_taken_for_ours(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    github.project.open(head=HEAD, base="main", title="Mine", by="mallory", fork="mallory/deploy")
    # A fork of the same owner answers to `head=acme:branch` as well.
    github.project.open(head=HEAD, base="main", title="Mine", by="mallory", fork="acme/config-fork")
    assert await github_pulls.find(HEAD, base="main") is None
    assert await github_pulls.list() == []
    assert (await github_pulls.open(new_pull_request())).number == 3


async def test_the_commit_of_a_trial_merge_is_not_what_landed(github: GitHubHost, github_pulls: PullRequests) -> None:
    opened = await github_pulls.open(new_pull_request())
    assert github.server.requests("POST", "/pulls")
    assert opened.merge_commit is None
    assert (await github_pulls.close(1, by="kardinal", comment="")).merge_commit is None


async def test_the_last_decision_of_each_person_who_may_write_counts(
    github: GitHubHost, github_pulls: PullRequests, moment: VirtualClock
) -> None:
    opened = await github_pulls.open(new_pull_request())
    github.project.collaborators = {"carol": "read", "mallory": "none", "owner": "admin"}
    for login, state in (
        ("alice", "CHANGES_REQUESTED"),
        ("bob", "APPROVED"),
        ("alice", "APPROVED"),
        ("carol", "APPROVED"),
        ("mallory", "APPROVED"),
        ("dave", "APPROVED"),
        ("bob", "COMMENTED"),
        ("dave", "CHANGES_REQUESTED"),
        ("erin", "DISMISSED"),
        ("owner", "APPROVED"),
    ):
        moment.skip(60)
        github.project.review(1, login, state)
    approvals = await github_pulls.approvals(1)
    assert [approval.by for approval in approvals] == ["bob", "alice", "owner"]
    assert {approval.commit for approval in approvals} == {opened.head_commit}
    assert isinstance(approvals[0], ReviewApproval)
    assert (approvals[1].at - approvals[0].at).total_seconds() == 60
    moment.skip(60)
    github.project.review(1, "bob", "CHANGES_REQUESTED")
    assert [approval.by for approval in await github_pulls.approvals(1)] == ["alice", "owner"]


async def test_a_comment_of_others_with_our_marker_is_left_alone(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    await github_pulls.open(new_pull_request())
    github.comment_by_person(1, "not yours\n\n<!-- kardinal:progress -->")
    await github_pulls.comment(1, "1 gate is closed", marker="progress")
    await github_pulls.comment(1, "all gates are open", marker="progress")
    texts = await github.comments(1)
    assert len(texts) == 2
    assert texts[0].startswith("not yours")
    assert texts[1].startswith("all gates are open")


async def test_labels_of_people_stay(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request(labels=("kardinal", "kardinal/promotion")))
    github.label_by_person(1, "do not merge on fridays/ever")
    updated = await github_pulls.update(1, labels=("kardinal", "kardinal/rollback"))
    assert set(updated.labels) == {"kardinal", "kardinal/rollback", "do not merge on fridays/ever"}
    writes = len(github.server.requests("POST"))
    assert await github_pulls.update(1, title=updated.title, body=updated.body, labels=updated.labels) == updated
    assert len(github.server.requests("POST")) == writes


async def test_a_status_is_written_when_it_changes(github: GitHubHost, github_pulls: PullRequests) -> None:
    commit = github.tip(HEAD)
    long = CommitStatus("kardinal/shop/prod", "pending", "gate business-hours is closed: " + "x" * 200)
    assert await github_pulls.set_status(commit, long)
    assert not await github_pulls.set_status(commit, long)
    assert len((await github_pulls.statuses(commit))["kardinal/shop/prod"].description) == 140
    done = CommitStatus("kardinal/shop/prod", "success", "all gates are open", "https://kardinal.example/shop")
    assert await github_pulls.set_status(commit, done)
    assert await github_pulls.set_status(commit, CommitStatus("kardinal", "success"))
    assert await github_pulls.statuses(commit) == {
        "kardinal/shop/prod": done,
        "kardinal": CommitStatus("kardinal", "success"),
    }
    assert len(github.server.requests("POST", "/statuses/")) == 3


async def test_a_branch_that_a_person_added_to_is_not_deleted(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request())
    merge = github.project.merge

    def merge_and_add(*args: object, **kwargs: object) -> object:
        merged = merge(*args, **kwargs)  # type: ignore[arg-type]
        github.add_commit(HEAD, "NOTES", "too late\n")
        return merged

    github.project.merge = merge_and_add  # type: ignore[method-assign, assignment]
    assert (await github_pulls.merge(1, by="kardinal")).state == "merged"
    assert github.content(HEAD, "NOTES") == "too late"


async def test_a_branch_that_was_merged_is_deleted(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request())
    await github_pulls.merge(1, by="kardinal")
    assert github.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == ["main"]


async def test_without_a_method_the_first_that_the_repository_allows_is_used(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    github.project.methods = {"rebase", "squash"}
    assert (await github_pulls.access()).merge_methods == {"rebase", "squash"}
    await github_pulls.open(new_pull_request())
    await github_pulls.merge(1, by="kardinal")
    assert len(github.project.git.parents(github.tip("main"))) == 1
    assert github.server.requests("PUT")[0].body["merge_method"] == "squash"


@pytest.mark.parametrize(
    ("rules", "methods", "linear", "expected"),
    [
        (("required_linear_history",), (), False, "squash"),
        (("pull_request",), ("rebase",), False, "rebase"),
        (("pull_request", "required_linear_history"), ("merge", "rebase"), False, "rebase"),
        (("deletion",), (), True, "squash"),
        ((), (), False, "merge"),
    ],
    ids=["linear ruleset", "method of a ruleset", "both", "linear protection", "nothing"],
)
async def test_the_rules_of_the_branch_choose_the_method_and_refuse_another_one(
    github: GitHubHost,
    github_pulls: PullRequests,
    rules: tuple[str, ...],
    methods: tuple[str, ...],
    *,
    linear: bool,
    expected: MergeMethod,
) -> None:
    github.project.rulesets[1] = Ruleset("main", rules, methods=methods)
    github.project.linear |= {"main"} if linear else set()
    await github_pulls.open(new_pull_request())
    for method in ("merge", "squash", "rebase"):
        if not github.project.allows("main", method):
            with pytest.raises(RequestRefused, match=rf"rules of main.*{method}.*Set git\.mergeMethod to .*{expected}"):
                await github_pulls.merge(1, by="kardinal", method=method)
    assert not github.server.requests("PUT")
    await github_pulls.merge(1, by="kardinal")
    assert github.server.requests("PUT")[0].body["merge_method"] == expected


async def test_settings_and_rules_that_leave_no_method_are_told(github: GitHubHost, github_pulls: PullRequests) -> None:
    github.project.methods = {"merge"}
    github.project.rulesets[1] = Ruleset("main", ("required_linear_history",))
    await github_pulls.open(new_pull_request())
    with pytest.raises(RequestRefused, match="no merge method is allowed") as refused:
        await github_pulls.merge(1, by="kardinal")
    assert not refused.value.transient


async def test_one_behind_a_base_that_wants_it_up_to_date_is_updated_by_the_host(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    opened = await github_pulls.open(new_pull_request())
    github.project.strict.add("main")
    assert not (await github_pulls.get(1)).behind
    await github_pulls.bring_up_to_date(1, expected_head=opened.head_commit)  # nothing to bring
    github.add_commit("main", "README.md", "others went on\n")
    assert (await github_pulls.get(1)).behind
    with pytest.raises(BehindBase):
        await (await github.connect()).merge(1, by="kardinal", expected_head=opened.head_commit)
    with pytest.raises(HeadMoved):
        await github_pulls.bring_up_to_date(1, expected_head="a" * 40)
    await github_pulls.bring_up_to_date(1, expected_head=opened.head_commit)
    updated = await github_pulls.get(1)
    assert (updated.behind, github.content(HEAD, "README.md")) == (False, "others went on")
    merged = await github_pulls.merge(1, by="kardinal", expected_head=updated.head_commit)
    assert merged.merge_commit == github.tip("main")


async def test_a_conflict_with_the_base_is_no_update(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request())
    github.add_commit("main", FILE, "mine\n")
    with pytest.raises(MergeConflict):
        await github_pulls.bring_up_to_date(1)


async def test_a_branch_with_a_merge_queue_is_entered_once_and_never_passed_by(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    opened = await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    for _ in range(3):
        with pytest.raises(MergeBlocked, match="merge queue of main") as blocked:
            await github_pulls.merge(1, by="kardinal", expected_head=opened.head_commit)
        assert blocked.value.transient
        assert blocked.value.retry_after == 30
    assert github.project.pulls[1].queued
    queued = [one for one in github.server.requests("POST", "/graphql") if "mutation" in one.body["query"]]
    assert len(queued) == 1
    assert queued[0].body["variables"]["input"]["expectedHeadOid"] == opened.head_commit
    assert not github.server.requests("PUT")
    github.project.merge(1, "squash", by="github-merge-queue[bot]")
    merged = await github_pulls.merge(1, by="kardinal", expected_head=opened.head_commit)
    assert (merged.state, merged.merge_commit) == ("merged", github.tip("main"))


async def test_refusal_of_the_merge_queue_is_reported(github: GitHubHost, github_pulls: PullRequests) -> None:
    await github_pulls.open(new_pull_request())
    github.project.queues.add("main")
    github.require_status("main", "kardinal")
    with pytest.raises(MergeBlocked, match='Required status check "kardinal"'):
        await github_pulls.merge(1, by="kardinal")
    assert not github.project.pulls[1].queued


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("Field 'mergeQueue' doesn't exist on type 'Repository'", None),
        ("Resource not accessible by personal access token", AccessDenied),
        ("Something went wrong", UnknownAnswer),
    ],
)
async def test_errors_of_the_queue_have_a_meaning(
    github: GitHubHost, github_pulls: PullRequests, message: str, outcome: type[Exception] | None
) -> None:
    await github_pulls.open(new_pull_request())
    github.server.faults.append(Fault("POST", "/graphql", status=200, body={"errors": [{"message": message}]}))
    if outcome is None:
        assert (await github_pulls.merge(1, by="kardinal")).state == "merged"
        return
    with pytest.raises(outcome, match=message):
        await github_pulls.merge(1, by="kardinal")
    assert github.project.pulls[1].state == "open"


async def test_a_token_that_the_host_quotes_is_not_in_the_error(github: GitHubHost, github_pulls: PullRequests) -> None:
    body = {"message": f"the token {TOKEN} is not allowed"}
    github.server.faults.append(Fault("GET", "/pulls/1$", status=403, body=body))
    with pytest.raises(AccessDenied) as denied:
        await github_pulls.get(1)
    assert TOKEN not in str(denied.value)
    assert "***" in str(denied.value)


async def test_a_pull_request_whose_fields_are_wrong_is_not_believed(
    github: GitHubHost, github_pulls: PullRequests
) -> None:
    bodies: list[object] = [[], {"number": "1"}, {"number": -1}, "text", 7]
    for body in bodies:
        github.server.faults.append(Fault("GET", "/pulls/1$", status=200, body=body))
        with pytest.raises(UnknownAnswer):
            await github_pulls.get(1)


def _delivery(payload: object, event: str = "pull_request") -> tuple[dict[str, str], bytes]:
    body = json.dumps(payload).encode()
    signature = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={signature}", "X-GitHub-Event": event}, body


def test_a_signed_delivery_says_what_it_is_about() -> None:
    parse = PROVIDERS["github"].parse_webhook
    assert parse is not None
    clone_url = "https://github.com/acme/config.git"
    payload = {
        "action": "closed",
        "number": 7,
        "pull_request": {"number": 7, "head": {"ref": HEAD, "sha": "a" * 40}},
        "repository": {"clone_url": clone_url},
    }
    delivery = parse(*_delivery(payload), SECRET)
    assert (delivery.event, delivery.number, delivery.branch) == ("pull_request", 7, HEAD)
    assert (delivery.commit, delivery.repository) == ("a" * 40, clone_url)
    group = {
        "action": "checks_requested",
        "merge_group": {"head_sha": "b" * 40, "base_ref": "refs/heads/main"},
        "repository": {"clone_url": clone_url},
    }
    delivery = parse(*_delivery(group, "merge_group"), SECRET)
    assert (delivery.event, delivery.commit, delivery.branch) == ("merge_group", "b" * 40, "main")
    assert parse(*_delivery({"zen": "Keep it logically awesome."}, "ping"), SECRET).number is None


def test_a_delivery_that_is_not_signed_by_the_secret_is_refused() -> None:
    parse = PROVIDERS["github"].parse_webhook
    assert parse is not None
    headers, body = _delivery({"number": 7})
    digest = headers["X-Hub-Signature-256"].removeprefix("sha256=")
    legacy = hmac.new(SECRET, body, hashlib.sha1).hexdigest()
    wrong: list[tuple[dict[str, str], bytes, bytes]] = [
        ({}, body, SECRET),
        ({"X-Hub-Signature-256": ""}, body, SECRET),
        ({"X-Hub-Signature-256": digest}, body, SECRET),
        ({"X-Hub-Signature-256": f"sha1={legacy}", "X-Hub-Signature": f"sha1={legacy}"}, body, SECRET),
        ({"X-Hub-Signature-256": "sha256=" + "0" * 64}, body, SECRET),
        ({"X-Hub-Signature-256": "sha256=é"}, body, SECRET),
        (headers, body + b" ", SECRET),
        (headers, body, b"another"),
        (headers, body, b""),
    ]
    for sent, content, secret in wrong:
        with pytest.raises(WebhookRejected) as rejected:
            parse(sent, content, secret)
        assert rejected.value.status == 401
        assert SECRET.decode() not in str(rejected.value)
    with pytest.raises(WebhookRejected) as rejected:
        parse(*_delivery([1]), SECRET)
    assert rejected.value.status == 400
