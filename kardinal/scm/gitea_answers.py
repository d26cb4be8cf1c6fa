"""The meanings of answers of Gitea and Forgejo that differ from the meaning of their HTTP status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.scm.errors import (
    AccessDenied,
    BehindBase,
    ConflictWithBase,
    HostUnavailable,
    MergeBlocked,
    PullRequestNotFound,
    RequestRefused,
)
from kardinal.scm.http import Outcome, Rule, unknown_at_first

__all__ = ["ANSWERS", "PERMISSIONS"]

PERMISSIONS: Mapping[str, str] = {
    "open": "write:repository",
    "get": "read:repository",
    "list": "read:repository",
    "find": "read:repository",
    "update": "write:repository",
    "merge": "write:repository",
    "update-branch": "write:repository",
    "close": "write:repository",
    "approvals": "read:repository",
    "closed-by": "read:issue",
    "files": "read:repository",
    "statuses": "read:repository",
    "set-status": "write:repository",
    "access": "read:repository",
    "branch": "read:repository",
    "labels": "write:issue",
    "reviewers": "write:repository",
    "assignees": "write:repository",
    "assignable": "read:repository",
    "comment": "write:issue",
    "user": "read:user",
}
"""Operation -> the scope that a token needs for it."""

_MERGE = frozenset({"merge"})
_OPEN = frozenset({"open"})
_CLOSE = frozenset({"close"})
_OF_ONE = frozenset(
    {"get", "files", "update", "update-branch", "comment", "close", "closed-by", "approvals", "labels", "assignees"}
)
_OF_COMMIT = frozenset({"statuses", "set-status"})

_MERGE_RULES: Sequence[Rule] = (
    Rule(status=404, outcome=Outcome.REREAD, operations=_MERGE),
    Rule(status=405, outcome=Outcome.REREAD, operations=_MERGE, body="already merged"),
    Rule(
        status=405,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body="not allowed to merge",
        error=AccessDenied,
        remedy="Give the token's user write access, and put it on the merge list of the branch protection",
    ),
    Rule(
        status=405,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body="allowed merge style",
        error=RequestRefused,
        remedy="Set git.mergeMethod to a method that the repository's settings allow",
    ),
    # The host is still comparing the branches, or found a conflict; its answer does not distinguish the two.
    Rule(
        status=405,
        outcome=Outcome.TRANSIENT,
        operations=_MERGE,
        body="try again later",
        error=MergeBlocked,
        remedy="If it stays so, the pull request conflicts with its base, or is a draft",
        retry_after=2.0,
    ),
    # The host checks this rule last, so all other rules are satisfied.
    Rule(status=405, outcome=Outcome.TRANSIENT, operations=_MERGE, body="behind the base", error=BehindBase),
    Rule(status=405, outcome=Outcome.TRANSIENT, operations=_MERGE, error=MergeBlocked),
    Rule(status=409, outcome=Outcome.REREAD, operations=_MERGE, body="head out of date"),
    # Another push to the base was faster.
    Rule(
        status=409,
        outcome=Outcome.TRANSIENT,
        operations=_MERGE,
        body="push out of date|cannot lock ref .* but expected",
        error=HostUnavailable,
    ),
    # Another push to the base is under way, or was killed.
    Rule(
        status=409,
        outcome=Outcome.TRANSIENT,
        operations=_MERGE,
        body=r"Unable to create '[^']*\.lock': File exists",
        error=MergeBlocked,
        remedy="If no push is under way there, one that was killed has left this file: remove it at the host",
    ),
    Rule(
        status=409,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body="PushRejected",
        error=RequestRefused,
        remedy="Ask the owner of the repository which rule or hook refuses the merge",
    ),
    Rule(
        status=409,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body='"(Style|StdErr)"',
        error=ConflictWithBase,
        remedy="Promote again, or resolve the conflict on the branch",
    ),
)

_UPDATE_RULES: Sequence[Rule] = (
    Rule(
        status=409,
        outcome=Outcome.TERMINAL,
        operations=frozenset({"update-branch"}),
        error=ConflictWithBase,
        remedy="Promote again, or resolve the conflict on the branch",
    ),
)

_OPEN_RULES: Sequence[Rule] = (
    Rule(status=409, outcome=Outcome.ADOPT, operations=_OPEN),
    Rule(status=422, outcome=Outcome.SUCCESS, operations=_OPEN, body="no changes between"),
    *unknown_at_first(
        _OPEN,
        RequestRefused,
        remedy="Check git.branch, and that the token's user can read the repository and has pull requests there",
    ),
)

ANSWERS: Sequence[Rule] = (
    *_MERGE_RULES,
    *_UPDATE_RULES,
    *_OPEN_RULES,
    Rule(status=404, outcome=Outcome.SUCCESS, operations=frozenset({"find", "branch"})),
    Rule(status=412, outcome=Outcome.REREAD, operations=_CLOSE),
    *unknown_at_first(_OF_ONE, PullRequestNotFound, at_first=PullRequestNotFound),
    Rule(
        status=404,
        outcome=Outcome.TERMINAL,
        error=AccessDenied,
        operations=frozenset({"access", "list"}),
        remedy="Check git.url, and that the token's user can read the repository",
    ),
    *unknown_at_first(_OF_COMMIT, RequestRefused),
    # The pull request has just been read, so the host does not know the name.
    Rule(status=404, outcome=Outcome.TERMINAL, operations=frozenset({"reviewers"}), error=RequestRefused),
    Rule(status=422, outcome=Outcome.TERMINAL, error=RequestRefused),
    Rule(status=400, outcome=Outcome.TERMINAL, error=RequestRefused),
    Rule(
        status=423,
        outcome=Outcome.TERMINAL,
        error=RequestRefused,
        remedy="The repository is archived: unarchive it, or point git.url to another one",
    ),
)
"""The table of both hosts; the common table follows it."""
