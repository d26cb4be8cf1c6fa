"""The answers of GitHub that mean more than their status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kardinal.scm.errors import (
    AccessDenied,
    ConflictWithBase,
    HostUnavailable,
    MergeBlocked,
    PullRequestNotFound,
    RateLimited,
    RequestRefused,
    StatusesFull,
)
from kardinal.scm.http import Outcome, Rule, unknown_at_first

__all__ = ["ANSWERS", "PERMISSIONS"]

_PULLS_READ = "Pull requests: read"
_PULLS_WRITE = "Pull requests: read and write"

PERMISSIONS: Mapping[str, str] = {
    "open": _PULLS_WRITE,
    "get": _PULLS_READ,
    "list": _PULLS_READ,
    "find": _PULLS_READ,
    "update": _PULLS_WRITE,
    "labels": _PULLS_WRITE,
    "reviewers": _PULLS_WRITE,
    "team-reviewers": f"{_PULLS_WRITE}, and of the organisation Members: read",
    "assignees": _PULLS_WRITE,
    "comment": _PULLS_WRITE,
    "close": _PULLS_WRITE,
    "approvals": _PULLS_READ,
    "closed-by": "Issues: read",
    "reviewer": "Metadata: read",
    "merge": "Contents: read and write",
    "enqueue": "Contents: read and write, and Merge queues: read and write",
    "update-branch": "Contents: read and write, and Pull requests: read and write",
    "delete-branch": "Contents: read and write",
    "queue": "Contents: read",
    "files": "Contents: read",
    "statuses": "Commit statuses: read",
    "set-status": "Commit statuses: read and write",
    "access": "Metadata: read",
    "rules": "Metadata: read",
}
"""Operation -> the permission of a fine-grained token or a GitHub App; a classic token needs the scope `repo`."""

_MERGE = frozenset({"merge"})
_UPDATE = frozenset({"update-branch"})
_OPEN = frozenset({"open"})
_ASSIGNING = frozenset({"labels", "reviewers", "team-reviewers", "assignees"})
_OF_ONE = _ASSIGNING | {"get", "update", "update-branch", "comment", "close", "closed-by", "approvals", "merge"}
_OF_COMMIT = frozenset({"statuses", "set-status", "files"})
_OF_REPOSITORY = frozenset({"access", "list", "find", "open"})
_TOKENS = frozenset({"installation", "mint"})
_HIDDEN = "Check git.url, and that the token may read the repository: GitHub answers 404 to who may not"

_QUEUE = frozenset({"enqueue"})
_SECONDARY = "secondary rate limit|abuse detection|API rate limit|was submitted too quickly"

# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_LIMIT_RULES: Sequence[Rule] = (
    Rule(status=403, outcome=Outcome.TRANSIENT, header=("retry-after", "[0-9]"), error=RateLimited),
    Rule(status=403, outcome=Outcome.TRANSIENT, header=("x-ratelimit-remaining", "^0$"), error=RateLimited),
    Rule(
        status=403,
        outcome=Outcome.TRANSIENT,
        body=_SECONDARY,
        error=RateLimited,
        retry_after=60.0,
    ),
    Rule(status=422, outcome=Outcome.TRANSIENT, body=_SECONDARY, error=RateLimited, retry_after=60.0),
    # GraphQL reports it in an answer with 200, whose errors contain no other text of people:
    # https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
    Rule(
        status=200,
        outcome=Outcome.TRANSIENT,
        operations=_QUEUE,
        body=rf'"type":\s*"RATE_LIMITED"|"message":\s*"[^"]*({_SECONDARY})',
        error=RateLimited,
        retry_after=60.0,
    ),
)

_ACCESS_RULES: Sequence[Rule] = (
    Rule(
        status=403,
        outcome=Outcome.TERMINAL,
        body="SAML",
        error=AccessDenied,
        remedy="Authorise the token for single sign-on of the organisation",
    ),
    Rule(
        status=403,
        outcome=Outcome.TERMINAL,
        body="archived",
        error=RequestRefused,
        remedy="The repository is archived: unarchive it, or point git.url to another one",
    ),
    Rule(
        status=404,
        outcome=Outcome.TERMINAL,
        operations=_TOKENS,
        error=AccessDenied,
        remedy="Install the GitHub App on the repository, and check appId and installationId in the Secret",
    ),
    Rule(
        status=401,
        outcome=Outcome.TERMINAL,
        operations=_TOKENS,
        error=AccessDenied,
        remedy="Check appId and privateKey in the Secret, and the clock of this machine",
    ),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=_TOKENS,
        error=AccessDenied,
        remedy="Give the installation of the GitHub App access to the repository",
    ),
)

_MERGE_RULES: Sequence[Rule] = (
    Rule(status=409, outcome=Outcome.REREAD, operations=_MERGE),
    Rule(
        status=405,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body="merges are not allowed|merge commits are not allowed",
        error=RequestRefused,
        remedy="Set git.mergeMethod to a method that the repository's settings allow",
    ),
    Rule(
        status=405,
        outcome=Outcome.TERMINAL,
        operations=_MERGE,
        body="merge conflict|can.t be rebased|cannot be rebased",
        error=ConflictWithBase,
        remedy="Promote again, or resolve the conflict on the branch",
    ),
    # Another merge landed while GitHub checked this one.
    Rule(
        status=405,
        outcome=Outcome.TRANSIENT,
        operations=_MERGE,
        body="base branch was modified",
        error=HostUnavailable,
        retry_after=1.0,
    ),
    Rule(status=405, outcome=Outcome.TRANSIENT, operations=_MERGE, error=MergeBlocked),
)

_UPDATE_RULES: Sequence[Rule] = (
    Rule(status=422, outcome=Outcome.SUCCESS, operations=_UPDATE, body="no new commits"),
    Rule(status=422, outcome=Outcome.REREAD, operations=_UPDATE, body="expected.head.sha"),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=_UPDATE,
        body="merge conflict",
        error=ConflictWithBase,
        remedy="Promote again, or resolve the conflict on the branch",
    ),
)

_OPEN_RULES: Sequence[Rule] = (
    Rule(status=422, outcome=Outcome.ADOPT, operations=_OPEN, body="already exists"),
    Rule(status=422, outcome=Outcome.SUCCESS, operations=_OPEN, body="no commits between"),
    *unknown_at_first(_OPEN, RequestRefused, status=422, body=r'"field":\s*"head"'),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=_OPEN,
        body="draft pull requests are not supported",
        error=RequestRefused,
        remedy="Leave git.pullRequest.draft out: the plan of the repository's owner has no drafts",
    ),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=_OPEN,
        body=r'"field":\s*"base"',
        error=RequestRefused,
        remedy="Check git.branch: the repository has no such branch",
    ),
)

ANSWERS: Sequence[Rule] = (
    *_LIMIT_RULES,
    *_ACCESS_RULES,
    *_MERGE_RULES,
    *_UPDATE_RULES,
    *_OPEN_RULES,
    # It was deleted already, by a person or by a setting of the repository.
    Rule(
        status=404,
        outcome=Outcome.SUCCESS,
        operations=frozenset({"unlabel", "branch", "delete-branch", "reviewer", "rules"}),
    ),
    Rule(status=422, outcome=Outcome.SUCCESS, operations=frozenset({"delete-branch"}), body="does not exist"),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=frozenset({"reviewers"}),
        error=RequestRefused,
        remedy="Only who has access to the repository can be asked for a review",
    ),
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=frozenset({"team-reviewers"}),
        error=RequestRefused,
        remedy="The team must have access to the repository, and the token Members: read of the organisation",
    ),
    # The limit is 1,000 per context: https://docs.github.com/en/rest/commits/statuses#create-a-commit-status
    Rule(
        status=422,
        outcome=Outcome.TERMINAL,
        operations=frozenset({"set-status"}),
        body="maximum number of statuses",
        error=StatusesFull,
        remedy="Another commit on the branch gets new ones",
    ),
    # A repository without a commit.
    Rule(status=409, outcome=Outcome.TRANSIENT, operations=frozenset({"queue"}), error=HostUnavailable),
    *unknown_at_first(_OF_ONE, PullRequestNotFound, at_first=PullRequestNotFound, remedy=_HIDDEN),
    *unknown_at_first(_OF_REPOSITORY, AccessDenied, remedy=_HIDDEN),
    *unknown_at_first(_OF_COMMIT, RequestRefused, remedy=_HIDDEN),
    *unknown_at_first(_OF_COMMIT, RequestRefused, status=422, body="no commit found"),
    Rule(status=410, outcome=Outcome.TERMINAL, error=RequestRefused),
    Rule(status=422, outcome=Outcome.TERMINAL, error=RequestRefused),
    Rule(status=400, outcome=Outcome.TERMINAL, error=RequestRefused),
)
"""The table of github.com and of Enterprise Server; the common table follows it."""
