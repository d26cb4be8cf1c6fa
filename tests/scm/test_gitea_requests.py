"""Requests that provider `gitea` sends, and those that it leaves out, to a host that answers as a test wants."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from kardinal.clock import SystemClock
from kardinal.scm import (
    PROVIDERS,
    CommitStatus,
    HeadMoved,
    NewPullRequest,
    PullRequests,
    RepositoryHost,
    ReviewApproval,
)
from kardinal.scm.comments import marked
from kardinal.scm.gitea_values import ApiReview, approvals_of
from kardinal.scm.http import HostSessions

BRANCH: dict[str, Any] = {"label": "kardinal/app-1/prod", "ref": "kardinal/app-1/prod", "sha": "a" * 40, "repo_id": 1}
PULL = {
    "number": 7,
    "html_url": "https://git.example.org/acme/config/pulls/7",
    "title": "Promote",
    "body": "line\r\nline\r\n",
    "state": "open",
    "created_at": "2026-03-03T10:00:00Z",
    "labels": [{"id": 1, "name": "kardinal"}, {"id": 2, "name": "urgent"}],
    "head": BRANCH,
    "base": {"label": "main", "ref": "main", "sha": "b" * 40, "repo_id": 1},
}


class ScriptedHost:
    """Answers by method and path, and keeps what was sent."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "GET /user": {"login": "bot"},
            "GET /repos/acme/config": {"default_merge_style": "squash"},
            "GET /repos/acme/config/pulls/7": PULL,
        }
        self.statuses: dict[str, int] = {}
        self.sent: list[tuple[str, Any]] = []

    async def handle(self, request: web.Request) -> web.Response:
        name = f"{request.method} {request.path.removeprefix('/api/v1')}"
        read = await request.read()
        if request.method != "GET":
            self.sent.append((name, json.loads(read)))
        if name not in self.answers:
            return web.json_response({"message": "not found"}, status=404)
        answer = self.answers[name]
        body = answer.pop(0) if isinstance(answer, Script) else answer
        return web.json_response(body, status=self.statuses.get(name, 200))


class Script(list[Any]):
    """Answers that follow each other."""


@pytest.fixture
async def host_and_pulls() -> AsyncIterator[tuple[ScriptedHost, PullRequests]]:
    host = ScriptedHost()
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", host.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with HostSessions(clock=SystemClock()) as http:
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/acme/config"
        provider = PROVIDERS["gitea"]
        bare = RepositoryHost(url=url, clock=http.clock, sessions=http)
        target = RepositoryHost(
            url=url, clock=http.clock, sessions=http, authenticator=provider.authenticate({"token": "t"}, bare)
        )
        assert provider.connect is not None
        yield host, provider.connect(target)
    await runner.cleanup()


@pytest.fixture
def host(host_and_pulls: tuple[ScriptedHost, PullRequests]) -> ScriptedHost:
    return host_and_pulls[0]


@pytest.fixture
def pulls(host_and_pulls: tuple[ScriptedHost, PullRequests]) -> PullRequests:
    return host_and_pulls[1]


async def test_a_marked_comment_of_another_user_is_neither_edited_nor_taken_for_ours(
    host: ScriptedHost, pulls: PullRequests
) -> None:
    path = "/repos/acme/config/issues/7/comments"
    host.answers[f"GET {path}"] = [{"id": 1, "body": marked("forged", "progress"), "user": {"login": "mallory"}}]
    host.answers[f"POST {path}"] = {}
    await pulls.comment(7, "1 gate is closed", marker="progress")
    assert host.sent == [(f"POST {path}", {"body": marked("1 gate is closed", "progress")})]


async def test_our_comment_is_edited_when_its_text_differs_and_not_because_of_line_endings(
    host: ScriptedHost, pulls: PullRequests
) -> None:
    path = "/repos/acme/config/issues"
    there = marked("one\ntwo", "progress").replace("\n", "\r\n")
    host.answers[f"GET {path}/7/comments"] = [{"id": 5, "body": there, "user": {"login": "bot"}}]
    host.answers[f"PATCH {path}/comments/5"] = {}
    await pulls.comment(7, "one\ntwo", marker="progress")
    assert host.sent == []
    await pulls.comment(7, "three", marker="progress")
    assert host.sent == [(f"PATCH {path}/comments/5", {"body": marked("three", "progress")})]


async def test_a_comment_that_quotes_a_marker_is_another_comment(host: ScriptedHost, pulls: PullRequests) -> None:
    path = "/repos/acme/config/issues/7/comments"
    quoting = f"{marked('quoted', 'progress')}\n\n<!-- kardinal:notice -->"
    host.answers[f"GET {path}"] = [{"id": 5, "body": quoting, "user": {"login": "bot"}}]
    host.answers[f"POST {path}"] = {}
    await pulls.comment(7, "new", marker="progress")
    assert [name for name, _ in host.sent] == [f"POST {path}"]


async def test_an_update_that_changes_nothing_sends_nothing(host: ScriptedHost, pulls: PullRequests) -> None:
    shown = await pulls.update(7, title="Promote", body="line\nline", labels=("kardinal",))
    assert shown.number == 7
    assert host.sent == []


async def test_a_merge_that_the_host_refuses_and_then_shows_is_believed(
    host: ScriptedHost, pulls: PullRequests
) -> None:
    host.answers["GET /repos/acme/config/pulls/7"] = Script([PULL, {**PULL, "state": "closed", "merged": True}])
    host.answers["POST /repos/acme/config/pulls/7/merge"] = {"message": "Please try again later"}
    host.statuses["POST /repos/acme/config/pulls/7/merge"] = 405
    assert (await pulls.merge(7, by="alice")).state == "merged"


async def test_a_status_that_says_the_same_is_not_sent(host: ScriptedHost, pulls: PullRequests) -> None:
    commit = "a" * 40
    pending = CommitStatus("kardinal", "pending", "1 gate is closed", "https://kardinal.example")
    host.answers[f"GET /repos/acme/config/commits/{commit}/status"] = {
        "statuses": [
            {
                "status": "pending",
                "context": "kardinal",
                "description": "1 gate is closed",
                "target_url": "https://kardinal.example",
            }
        ]
    }
    host.answers[f"POST /repos/acme/config/statuses/{commit}"] = {"status": "success"}
    assert not await pulls.set_status(commit, pending)
    assert host.sent == []
    assert await pulls.set_status(commit, CommitStatus("kardinal", "success"))
    assert [body["state"] for _, body in host.sent] == ["success"]


async def test_first_of_two_opened_in_one_instant_is_kept(host: ScriptedHost, pulls: PullRequests) -> None:
    path = "/repos/acme/config/pulls"
    fork = {**PULL, "number": 5, "head": {**BRANCH, "repo_id": 2}}
    other = {**PULL, "number": 6, "head": {**BRANCH, "label": "kardinal/app-2/prod"}}
    ours = {**PULL, "number": 9}
    host.answers[f"POST {path}"] = ours
    host.answers[f"GET {path}"] = [fork, other, PULL, ours]
    host.answers[f"GET {path}/9"] = Script([ours, {**ours, "state": "closed"}])
    host.answers[f"PATCH {path}/9"] = {}
    host.answers["GET /repos/acme/config/issues/9/comments"] = []
    host.answers["POST /repos/acme/config/issues/9/comments"] = {}
    opened = await pulls.open(NewPullRequest("Promote", "", head=BRANCH["label"], base="main"))
    assert opened.number == 7
    assert (f"PATCH {path}/9", {"state": "closed"}) in host.sent
    host.sent.clear()
    host.answers[f"GET {path}"] = [fork, other, ours]
    opened = await pulls.open(NewPullRequest("Promote", "", head=BRANCH["label"], base="main"))
    assert opened.number == 9
    assert [name for name, _ in host.sent] == [f"POST {path}"]


async def test_a_merge_names_the_head_and_the_usual_method_of_the_repository(
    host: ScriptedHost, pulls: PullRequests
) -> None:
    landed = {**PULL, "state": "closed", "merged": True, "merge_commit_sha": "c" * 40}
    host.answers["GET /repos/acme/config/pulls/7"] = Script([PULL, landed])
    host.answers["POST /repos/acme/config/pulls/7/merge"] = {}
    merged = await pulls.merge(7, by="kardinal", expected_head="a" * 40)
    assert (merged.state, merged.merge_commit) == ("merged", "c" * 40)
    ((_, body),) = host.sent
    assert (body["Do"], body["head_commit_id"]) == ("squash", "a" * 40)


async def test_a_head_that_moved_is_seen_before_anything_is_sent(host: ScriptedHost, pulls: PullRequests) -> None:
    with pytest.raises(HeadMoved):
        await pulls.merge(7, by="kardinal", expected_head="d" * 40)
    assert host.sent == []


async def test_a_landing_commit_of_a_pull_request_that_is_open_is_not_read(
    host: ScriptedHost, pulls: PullRequests
) -> None:
    host.answers["GET /repos/acme/config/pulls/7"] = {
        **PULL,
        "merge_commit_sha": "e" * 40,
        "merged_at": "2026-03-03T10:00:00Z",
        "merged_by": {"login": "mallory"},
    }
    shown = await pulls.get(7)
    assert (shown.merge_commit, shown.merged_at, shown.merged_by) == (None, None, None)


async def test_an_adopted_pull_request_keeps_its_text(host: ScriptedHost, pulls: PullRequests) -> None:
    host.answers["GET /repos/acme/config/pulls/main/kardinal%2Fapp-1%2Fprod"] = PULL
    host.answers["GET /repos/acme/config/pulls/main/kardinal/app-1/prod"] = PULL
    found = await pulls.find("kardinal/app-1/prod", base="main")
    assert found is not None
    assert found.title == "Promote"
    assert host.sent == []


def review(state: str, at: int, *, user: str = "alice", official: bool = True, dismissed: bool = False) -> ApiReview:
    return ApiReview.model_validate(
        {
            "state": state,
            "user": {"login": user},
            "submitted_at": f"2026-03-03T10:00:{at:02}Z",
            "commit_id": "a" * 40,
            "official": official,
            "dismissed": dismissed,
        }
    )


@pytest.mark.parametrize(
    ("reviews", "approvers"),
    [
        ([], []),
        ([review("APPROVED", 1)], ["alice"]),
        ([review("APPROVED", 1), review("COMMENT", 2)], ["alice"]),
        ([review("APPROVED", 1), review("REQUEST_CHANGES", 2)], []),
        ([review("REQUEST_CHANGES", 2), review("APPROVED", 1)], []),
        ([review("REQUEST_CHANGES", 1), review("APPROVED", 2)], ["alice"]),
        ([review("APPROVED", 1, dismissed=True)], []),
        ([review("APPROVED", 1, official=False)], []),
        ([review("APPROVED", 1), review("APPROVED", 2, official=False)], []),
        ([review("PENDING", 1)], []),
        ([review("REQUEST_REVIEW", 1)], []),
        ([review("APPROVED", 2), review("APPROVED", 1, user="bob")], ["bob", "alice"]),
    ],
)
def test_the_last_word_of_each_official_reviewer_counts(reviews: list[ApiReview], approvers: list[str]) -> None:
    approvals = approvals_of(reviews)
    assert [approval.by for approval in approvals] == approvers
    assert all(isinstance(approval, ReviewApproval) and approval.commit == "a" * 40 for approval in approvals)
