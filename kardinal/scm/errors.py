"""The errors of pull requests.

    PullRequestError
    ├── PullRequestNotFound      no pull request has that number, or the host does not show it yet
    ├── PullRequestEnded         it is merged or closed, and the request needs an open one
    ├── NothingToMerge           the base branch contains every commit of the head
    ├── HeadMoved                commits were added to the head since it was read
    ├── MergeBlocked             the host's own rules hold the merge: checks, reviews, a queue
    │   └── BehindBase           the host requires that the head contains every commit of the base
    ├── UnsupportedProvider      this provider, or this repository, does not support the request
    ├── WebhookRejected          a delivery that is not from the host, or that cannot be parsed
    └── HostError                an unsuccessful answer of a host, or none
        ├── HostUnavailable      no answer in time, a lost connection, 5xx
        ├── RateLimited          the host, or the budget of its credential, asks to wait
        ├── AccessDenied         the credential is refused, or lacks a permission
        ├── RequestRefused       the host will refuse the request again
        │   ├── AnswerTooLarge   an answer that is too large to be read
        │   └── StatusesFull     a commit with the maximum number of statuses of one context
        └── UnknownAnswer        no table knows this answer; worth a few attempts

Failures of the repository below (a branch that is gone, a lock) are raised as `kardinal.git.GitError`, and so is a
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
    """A request about a pull request that failed, and the remedy."""


class PullRequestNotFound(PullRequestError):
    """No pull request has this number."""


class PullRequestEnded(PullRequestError):
    """The pull request is merged or closed already."""

    @classmethod
    def closed(cls, number: int, *, noun: str = "pull request") -> PullRequestEnded:
        """Return the error of a merge; `noun` is the host's word for a pull request."""
        return cls(f"{noun} {number} is closed", remedy="Promote again to open a new one")

    @classmethod
    def merged(cls, number: int, *, noun: str = "pull request") -> PullRequestEnded:
        """Return the error of closing; `noun` is the host's word for a pull request."""
        return cls(f"{noun} {number} is merged", remedy="Undo it with a rollback")


class NothingToMerge(PullRequestError):
    """The base branch contains every commit of the head."""


class HeadMoved(PullRequestError):
    """The head is no longer the commit that was read; it must be read again."""

    transient = True

    @classmethod
    def away_from(cls, expected: str, *, branch: str, at: str | None) -> HeadMoved:
        """Return the error of a branch that is at another commit than the expected one."""
        return cls(f"branch {branch} is at {at}, and no longer at {expected}")


class MergeBlocked(PullRequestError):
    """The host does not allow the merge yet."""

    transient = True


class BehindBase(MergeBlocked):
    """The host does not allow the merge until the head contains every commit of the base."""


class ConflictWithBase(MergeConflict):
    """A pull request that cannot be merged because its base changed the same lines."""

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__((), remedy=remedy)
        self.message = message
        self.args = (message,)


class UnsupportedProvider(PullRequestError):
    """A provider, or a repository, that does not support the request."""


class WebhookRejected(PullRequestError):
    """A delivery that is not authentic or cannot be parsed; `status` is the HTTP status to answer with."""

    def __init__(self, message: str, *, status: int, remedy: str = "") -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


class HostError(PullRequestError):
    """An unsuccessful answer of a host."""

    status: int | None = None
    """The HTTP status, if there was an answer."""


class HostUnavailable(HostError):
    """A host that gave no answer, or said that it cannot give one now."""

    transient = True


class RateLimited(HostError):
    """A request that the host will answer later; `retry_after` is the wait in seconds."""

    transient = True


class AccessDenied(HostError):
    """A credential that is refused, or lacks a permission. Retried, because the Secret can be corrected at any time."""

    field = "git.secretRef"
    transient = True
    blocked = True


class RequestRefused(HostError):
    """A request that the host will refuse again."""


class AnswerTooLarge(RequestRefused):
    """An answer that is too large to be read; a list is requested again in smaller pages."""


class StatusesFull(RequestRefused):
    """A commit that accepts no further status of a context; nothing else depends on it."""


class UnknownAnswer(HostError):
    """An answer that no table knows. It is retried up to `attempts` times."""

    transient = True
    attempts = UNKNOWN_ATTEMPTS
