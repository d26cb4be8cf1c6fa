"""The meaning of an answer: tables, waits, and what is quoted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from kardinal.scm.errors import (
    AccessDenied,
    BehindBase,
    ConflictWithBase,
    HostUnavailable,
    MergeBlocked,
    PullRequestNotFound,
    RateLimited,
    RequestRefused,
    UnknownAnswer,
)
from kardinal.scm.gitea_answers import ANSWERS, PERMISSIONS
from kardinal.scm.http import HostAnswer, Outcome, Rule, decide
from kardinal.scm.http.answers import MAX_WAIT, quota_of, retry_after_of

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)


class Row(NamedTuple):
    """An answer to an operation, `age` seconds after its subject was first heard of, and what follows."""

    operation: str
    status: int
    body: str
    age: float | None
    outcome: Outcome
    error: type[Exception] | None

    def decided(self) -> Rule:
        return decide(ANSWERS, self.operation, HostAnswer(self.status, {}, self.body.encode()), age=self.age)


_REJECTED = '{"message":"PushRejected with remote message: '
OVERTAKEN = f"{_REJECTED}cannot lock ref 'refs/heads/main': is at 2d4513a3 but expected 398ca95c\"}}"
_LOCK = "/var/lib/gitea/data/gitea-repositories/acme/gitops.git/./refs/heads/main.lock"
LOCKED = f"{_REJECTED}cannot lock ref 'refs/heads/main': Unable to create '{_LOCK}': File exists.\\n\\nAnother git\"}}"

GITEA: Sequence[Row] = [
    Row("open", 201, "{}", None, Outcome.SUCCESS, None),
    Row("open", 409, '{"message":"pull request already exists for these targets"}', None, Outcome.ADOPT, None),
    Row("open", 422, '{"message":"Invalid PullRequest: There are no changes between"}', None, Outcome.SUCCESS, None),
    Row("open", 422, '{"message":"Invalid PullRequest: base and head"}', None, Outcome.TERMINAL, RequestRefused),
    Row("open", 404, '{"message":"not found"}', 0.0, Outcome.TRANSIENT, HostUnavailable),
    Row("open", 404, '{"message":"not found"}', 61.0, Outcome.TERMINAL, RequestRefused),
    Row("open", 423, '{"message":"archived"}', None, Outcome.TERMINAL, RequestRefused),
    Row("get", 404, '{"message":"not found"}', 59.0, Outcome.TRANSIENT, PullRequestNotFound),
    Row("get", 404, '{"message":"not found"}', 60.0, Outcome.TERMINAL, PullRequestNotFound),
    Row("get", 404, '{"message":"not found"}', None, Outcome.TERMINAL, PullRequestNotFound),
    Row("find", 404, '{"message":"not found"}', None, Outcome.SUCCESS, None),
    Row("list", 404, '{"message":"not found"}', None, Outcome.TERMINAL, AccessDenied),
    Row("merge", 200, "", None, Outcome.SUCCESS, None),
    Row("merge", 404, '{"message":"not found"}', None, Outcome.REREAD, None),
    Row("merge", 405, '{"message":"The PR is already merged"}', None, Outcome.REREAD, None),
    Row("merge", 405, '{"message":"User not allowed to merge PR"}', None, Outcome.TERMINAL, AccessDenied),
    Row("merge", 405, '{"message":"Please try again later"}', None, Outcome.TRANSIENT, MergeBlocked),
    Row("merge", 405, '{"message":"Not all required status checks successful"}', None, Outcome.TRANSIENT, MergeBlocked),
    Row(
        "merge", 405, '{"message":"rebase is not allowed an allowed merge style"}', 0, Outcome.TERMINAL, RequestRefused
    ),
    Row("merge", 405, '{"message":"The head branch is behind the base branch"}', None, Outcome.TRANSIENT, BehindBase),
    Row("update-branch", 200, "", None, Outcome.SUCCESS, None),
    Row("update-branch", 409, '{"message":"merge failed because of conflict"}', 0, Outcome.TERMINAL, ConflictWithBase),
    Row("merge", 409, '{"message":"head out of date"}', None, Outcome.REREAD, None),
    Row("merge", 409, '{"message":"merge push out of date"}', None, Outcome.TRANSIENT, HostUnavailable),
    Row("merge", 409, '{"message":"PushRejected with remote message: no"}', None, Outcome.TERMINAL, RequestRefused),
    Row("merge", 409, OVERTAKEN, None, Outcome.TRANSIENT, HostUnavailable),
    Row("merge", 409, LOCKED, None, Outcome.TRANSIENT, MergeBlocked),
    Row("merge", 409, '{"Style":"rebase","StdErr":"CONFLICT"}', None, Outcome.TERMINAL, ConflictWithBase),
    Row("merge", 409, '{"message":"something new"}', None, Outcome.UNKNOWN, UnknownAnswer),
    Row("close", 412, '{"message":"already merged"}', None, Outcome.REREAD, None),
    Row("update", 409, '{"message":"the issue is already changed"}', None, Outcome.UNKNOWN, UnknownAnswer),
    Row("statuses", 404, '{"message":"not found"}', 1.0, Outcome.TRANSIENT, HostUnavailable),
    Row("statuses", 404, '{"message":"not found"}', 90.0, Outcome.TERMINAL, RequestRefused),
    Row("reviewers", 404, '{"message":"user does not exist"}', 0.0, Outcome.TERMINAL, RequestRefused),
    Row("get", 401, '{"message":"invalid"}', None, Outcome.TERMINAL, AccessDenied),
    Row("get", 403, '{"message":"token does not have"}', None, Outcome.TERMINAL, AccessDenied),
    Row("get", 429, "", None, Outcome.TRANSIENT, RateLimited),
    Row("get", 408, "", None, Outcome.TRANSIENT, HostUnavailable),
    Row("merge", 500, '{"message":""}', None, Outcome.TRANSIENT, HostUnavailable),
    Row("get", 503, "<html>", None, Outcome.TRANSIENT, HostUnavailable),
    Row("get", 307, "", None, Outcome.TERMINAL, RequestRefused),
    Row("get", 418, "", None, Outcome.UNKNOWN, UnknownAnswer),
]


@pytest.mark.parametrize("row", GITEA, ids=lambda row: f"{row.operation}-{row.status}")
def test_the_table_of_gitea_and_forgejo(row: Row) -> None:
    rule = row.decided()
    assert (rule.outcome, rule.error) == (row.outcome, row.error)


def test_a_row_is_reached_by_some_answer() -> None:
    reached = {id(row.decided()) for row in GITEA}
    unreached = [rule for rule in ANSWERS if id(rule) not in reached and rule.status != 400]
    assert unreached == []


def test_each_operation_has_a_permission_to_name() -> None:
    named = {operation for rule in ANSWERS for operation in rule.operations}
    assert named <= set(PERMISSIONS)


def test_a_header_decides_where_a_rule_asks_for_one() -> None:
    table = [Rule(status=403, outcome=Outcome.TRANSIENT, header=("x-ratelimit-remaining", "^0$"), error=RateLimited)]
    assert decide(table, "get", HostAnswer(403, {"x-ratelimit-remaining": "0"})).outcome is Outcome.TRANSIENT
    assert decide(table, "get", HostAnswer(403, {"x-ratelimit-remaining": "10"})).outcome is Outcome.TERMINAL
    assert decide(table, "get", HostAnswer(403)).outcome is Outcome.TERMINAL


def test_an_unknown_answer_is_worth_three_attempts() -> None:
    assert (UnknownAnswer.transient, UnknownAnswer.attempts) == (True, 3)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Tue, 03 Mar 2026 10:01:30 GMT", 90.0),
        ("Tue, 03 Mar 2026 09:00:00 GMT", 0.0),
        ("99999999", MAX_WAIT),
        ("-5", None),
        ("soon", None),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", None),
        ("1e9", None),
        ("٣", None),
        ("", None),
    ],
)
def test_a_wait_that_a_host_asks_for_is_bounded(text: str, seconds: float | None) -> None:
    assert retry_after_of({"retry-after": text}, now=NOW) == seconds


def test_the_quota_is_read_under_both_names() -> None:
    reset = str(int(NOW.timestamp()) + 30)
    hub = quota_of({"x-ratelimit-remaining": "12", "x-ratelimit-limit": "5000", "x-ratelimit-reset": reset}, now=NOW)
    lab = quota_of({"ratelimit-remaining": "12", "ratelimit-limit": "5000", "ratelimit-reset": reset}, now=NOW)
    assert hub == lab
    assert hub is not None
    assert (hub.remaining, hub.limit, hub.reset) == (12, 5000, 30.0)
    assert quota_of({"x-ratelimit-remaining": "many"}, now=NOW) is None
    assert quota_of({}, now=NOW) is None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"message": "a\\n\\tb\\u0000\\u202ec"}', "a b c"),
        (
            b'{"message": "Validation Failed", "errors": [{"message": "no"}, "x", {"code": "y"}]}',
            "Validation Failed; no",
        ),
        (
            b'{"message": {"source_branch": ["does not exist"], "title": ["is too long"]}}',
            "source_branch does not exist; title is too long",
        ),
        (b'{"message": ["Another open merge request exists"]}', "Another open merge request exists"),
        (
            b'{"error": "insufficient_scope", "error_description": "more is needed"}',
            "insufficient_scope; more is needed",
        ),
        (b'{"secret": "of an internal service"}', ""),
        (b"password=of-an-internal-service", ""),
        (b"<html>of an internal service", ""),
        (b'["of an internal service"]', ""),
        (b'{"message": 7, "errors": {"message": "x"}}', ""),
        (b"[" * 100_000, ""),
        (b"\xff\xfe", ""),
    ],
)
def test_documented_fields_of_an_error_are_quoted(body: bytes, said: str) -> None:
    assert HostAnswer(500, {}, body).message() == said


def test_a_message_is_cut() -> None:
    assert len(HostAnswer(500, {}, b'{"message": "' + b"x" * 10_000 + b'"}').message()) == 200
