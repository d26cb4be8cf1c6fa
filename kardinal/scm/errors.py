"""The errors of pull requests.

    PullRequestError
    ├── PullRequestNotFound      no pull request has that number, or the host does not show it yet
    ├── PullRequestEnded         it is merged or closed, and the request needs an open one
    ├── NothingToMerge           the base branch has every commit of the head
    ├── HeadMoved                commits were added to the head since it was looked at
    ├── MergeBlocked             the host's own rules hold the merge: checks, reviews, a queue
    │   └── BehindBase           the host merges it once the head has every commit of the base
    ├── UnsupportedProvider      this provider, or this repository, cannot do what was asked
    ├── WebhookRejected          a delivery that is not from the host, or not one that can be read
    └── HostError                an answer of a host, or none
        ├── HostUnavailable      no answer in time, a lost connection, 5xx
        ├── RateLimited          the host, or the budget of its credential, asks to wait
        ├── AccessDenied         the credential is refused, or lacks a permission
        ├── RequestRefused       the host will refuse it again
        │   ├── AnswerTooLarge   an answer that is not read to its end
        │   └── StatusesFull     a commit with as many statuses of one context as the host takes
        └── UnknownAnswer        no table knows this answer; worth a few attempts

Failures of the repository below (a branch that is gone, a lock) arrive as `kardinal.git.GitError`, and so does a
conflict that a host reports: `ConflictWithBase` is a `kardinal.git.MergeConflict` without the names of files.
"""

from __future__ import annotations

from kardinal.git import MergeConflict
from kardinal.objects.errors import KardinalError

__all__ = [
    "AccessDenied",
    "AnswerTooLarge",
    "BehindBase",
    "ConflictWithBase",
    "HeadMoved",
    "HostError",
    "HostUnavailable",
    "MergeBlocked",
    "NothingToMerge",
    "PullRequestEnded",
    "PullRequestError",
    "PullRequestNotFound",
    "RateLimited",
    "RequestRefused",
    "StatusesFull",
    "UnknownAnswer",
    "UnsupportedProvider",
    "WebhookRejected",
]

UNKNOWN_ATTEMPTS = 3


class PullRequestError(KardinalError):
    """A pull request that can not be what was asked of it, and what to do about it."""


class PullRequestNotFound(PullRequestError):
    """A number that no pull request has."""


class PullRequestEnded(PullRequestError):
    """A pull request that is merged or closed already."""


class NothingToMerge(PullRequestError):
    """A head without a commit that the base branch does not have."""


class HeadMoved(PullRequestError):
    """A head that is no longer the commit which was looked at: it is read again."""

    transient = True


class MergeBlocked(PullRequestError):
    """A merge that the host does not allow yet."""

    transient = True


class BehindBase(MergeBlocked):
    """A merge that the host does not allow until the head has every commit of the base."""


class ConflictWithBase(MergeConflict):
    """A pull request that cannot be merged because its base changed the same lines."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__((), remedy=remedy)
        self.message = message
        self.args = (message,)


class UnsupportedProvider(PullRequestError):
    """A provider, or a repository, without what was asked for."""


class WebhookRejected(PullRequestError):
    """A delivery that is not believed; `status` is the HTTP status to answer with."""

    def __init__(self, message: str, *, status: int, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class HostError(PullRequestError):
    """An answer of a host that is no success."""

    status: int | None = None
    """The HTTP status, where there was an answer."""


class HostUnavailable(HostError):
    """A host that gave no answer, or said that it cannot give one now."""

    transient = True


class RateLimited(HostError):
    """A request that the host answers later; `retry_after` says when to try again."""

    transient = True


class AccessDenied(HostError):
    """A credential that is refused, or that lacks a permission: its Secret can be put right at any time."""

    field = "git.secretRef"
    transient = True
    blocked = True


class RequestRefused(HostError):
    """A request that the host will refuse again."""


class AnswerTooLarge(RequestRefused):
    """An answer that is not read to its end; a list is asked for in smaller pages."""


class StatusesFull(RequestRefused):
    """A commit that takes no further status of a context; nothing else depends on it."""


class UnknownAnswer(HostError):
    """An answer that no table knows: it is tried `attempts` times."""

    transient = True
    attempts = UNKNOWN_ATTEMPTS
