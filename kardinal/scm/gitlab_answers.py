"""The answers of GitLab that mean more than their status.

For merges: https://docs.gitlab.com/api/merge_requests/#merge-a-merge-request
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.scm.errors import (
    AccessDenied,
    ConflictWithBase,
    HostUnavailable,
    MergeBlocked,
    PullRequestNotFound,
    RequestRefused,
)
from kardinal.scm.http import Outcome, Rule, unknown_at_first

__all__ = ["ANSWERS", "PERMISSIONS"]

_READ = "read_api and the role Reporter"
_WRITE = "api and the role Developer"

PERMISSIONS: Mapping[str, str] = {
    "open": _WRITE,
    "get": _READ,
    "list": _READ,
    "find": _READ,
    "compare": _READ,
    "files": _READ,
    "update": _WRITE,
    "comment": _WRITE,
    "close": _WRITE,
    "approvals": _READ,
    "merge": _WRITE,
    "rebase": _WRITE,
    "statuses": _READ,
    "set-status": _WRITE,
    "access": _READ,
    "branch": _READ,
    "token": _READ,
    "user": "read_user or api",
    "users": "read_user or api",
    "reviewers": _WRITE,
    "assignees": _WRITE,
    "labels": _WRITE,
}
"""Operation -> the scope that a token, and the role that its user, needs for it."""

_MERGE = frozenset({"merge"})
_OPEN = frozenset({"open"})
_OF_ONE = frozenset({"get", "update", "comment", "close", "approvals", "merge", "rebase"})
_OF_ONE |= {"reviewers", "assignees", "labels"}
_OF_COMMIT = frozenset({"statuses", "set-status", "files"})
_OF_BRANCHES = frozenset({"compare", "open"})
_CHECK_URL = "Check git.url, and that the token's user is a member of the project: GitLab answers 404 to others"

_MERGE_RULES: Sequence[Rule] = (
    Rule(
        status=401,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        error=AccessDenied,
        remedy="Add the token's user to those allowed to merge into the protected branch",
    ),
    # Closed, a draft, running or failed checks, missing approvals: the state distinguishes them.
    Rule(status=405, outcome=Outcome.TRANSIENT, operations=_MERGE, error=MergeBlocked),
    # An older GitLab answers 406 instead of 422.
    Rule(
        status=406,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        error=ConflictWithBase,
        remedy="Promote again, or resolve the conflict on the branch",
    ),
    Rule(status=409, outcome=Outcome.REREAD, operations=_MERGE),
    # A conflict, or GitLab is still comparing the branches: the state distinguishes them.
    Rule(status=422, outcome=Outcome.TRANSIENT, operations=_MERGE, error=MergeBlocked, retry_after=2.0),
    Rule(
        status=403,
        outcome=Outcome.TERMINAL,
        operations=frozenset({"rebase"}),
        error=AccessDenied,
        remedy="Allow the token's user to push to the branch of the merge request",
    ),
)

_OPEN_RULES: Sequence[Rule] = (
    Rule(status=409, outcome=Outcome.ADOPT, operations=_OPEN),
    *unknown_at_first(_OF_BRANCHES, RequestRefused, remedy=f"Check git.branch. {_CHECK_URL}"),
    *unknown_at_first(_OF_BRANCHES, RequestRefused, status=400, body="branch"),
)

ANSWERS: Sequence[Rule] = (
    *_MERGE_RULES,
    *_OPEN_RULES,
    Rule(
        status=403,
        outcome=Outcome.TERMINAL,
        body="insufficient_scope",
        error=AccessDenied,
        remedy="Make the token with the scope api",
    ),
    *unknown_at_first(_OF_ONE, PullRequestNotFound, at_first=PullRequestNotFound, remedy=_CHECK_URL),
    # The same status again; GitLab has no specific answer for it.
    Rule(status=400, outcome=Outcome.ADOPT, operations=frozenset({"set-status"}), body="cannot transition status"),
    *unknown_at_first(_OF_COMMIT, RequestRefused, remedy=_CHECK_URL),
    Rule(status=404, outcome=Outcome.SUCCESS, operations=frozenset({"branch"})),
    Rule(status=404, outcome=Outcome.TERMINAL, error=AccessDenied, remedy=_CHECK_URL),
    Rule(status=400, outcome=Outcome.TERMINAL, error=RequestRefused),
    Rule(status=409, outcome=Outcome.TRANSIENT, error=HostUnavailable, retry_after=1.0),
    Rule(status=422, outcome=Outcome.TERMINAL, error=RequestRefused),
)
"""The table of gitlab.com and of a self-managed GitLab; the common table follows it."""
