"""The errors of pull requests.

    PullRequestError
    ├── PullRequestNotFound      no pull request has that number
    ├── PullRequestEnded         it is merged or closed, and the request needs an open one
    └── UnsupportedProvider      this repository can not hold pull requests of this provider

Failures of the repository below (a conflict, a branch that is gone, a lock) arrive as `kardinal.git.GitError`.
"""

from __future__ import annotations

from kardinal.objects.errors import KardinalError

__all__ = ["PullRequestEnded", "PullRequestError", "PullRequestNotFound", "UnsupportedProvider"]


class PullRequestError(KardinalError):
    """A pull request that can not be what was asked of it, and what to do about it."""


class PullRequestNotFound(PullRequestError):
    """A number that no pull request has."""


class PullRequestEnded(PullRequestError):
    """A pull request that is merged or closed already."""


class UnsupportedProvider(PullRequestError):
    """A repository without a place for pull requests."""
