"""Pull requests, one module per provider behind one protocol."""

from kardinal.scm.base import NewPullRequest, PullRequest, PullRequests, PullRequestState, RequestObserver
from kardinal.scm.errors import PullRequestEnded, PullRequestError, PullRequestNotFound, UnsupportedProvider
from kardinal.scm.local import local_pull_requests

__all__ = [
    "NewPullRequest",
    "PullRequest",
    "PullRequestEnded",
    "PullRequestError",
    "PullRequestNotFound",
    "PullRequestState",
    "PullRequests",
    "RequestObserver",
    "UnsupportedProvider",
    "local_pull_requests",
]
