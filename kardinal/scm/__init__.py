"""Pull requests, one module per provider behind one protocol."""

from collections.abc import Mapping

from kardinal.scm.base import (
    Access,
    Approval,
    BranchAccess,
    CommitStatus,
    MergeGroup,
    MergeMethod,
    Need,
    NewPullRequest,
    OpenHead,
    PullRequest,
    PullRequests,
    PullRequestState,
    RequestObserver,
)
from kardinal.scm.errors import (
    AccessDenied,
    BehindBase,
    ConflictWithBase,
    HeadMoved,
    HostError,
    HostUnavailable,
    MergeBlocked,
    NothingToMerge,
    PullRequestEnded,
    PullRequestError,
    PullRequestNotFound,
    RateLimited,
    RequestRefused,
    StatusesFull,
    UnknownAnswer,
    UnsupportedProvider,
    WebhookRejected,
)
from kardinal.scm.forgejo import FORGEJO
from kardinal.scm.gitea import GITEA
from kardinal.scm.github import GITHUB
from kardinal.scm.gitlab import GITLAB
from kardinal.scm.local import LOCAL, local_pull_requests
from kardinal.scm.provider import Provider, Target
from kardinal.scm.webhooks import Delivery
from kardinal.steps.capabilities import Capabilities

__all__ = [
    "PROVIDERS",
    "Access",
    "AccessDenied",
    "Approval",
    "BehindBase",
    "BranchAccess",
    "CommitStatus",
    "ConflictWithBase",
    "Delivery",
    "HeadMoved",
    "HostError",
    "HostUnavailable",
    "MergeBlocked",
    "MergeGroup",
    "MergeMethod",
    "Need",
    "NewPullRequest",
    "NothingToMerge",
    "OpenHead",
    "Provider",
    "PullRequest",
    "PullRequestEnded",
    "PullRequestError",
    "PullRequestNotFound",
    "PullRequestState",
    "PullRequests",
    "RateLimited",
    "RequestObserver",
    "RequestRefused",
    "StatusesFull",
    "Target",
    "UnknownAnswer",
    "UnsupportedProvider",
    "WebhookRejected",
    "local_pull_requests",
]

_GIT = Provider(name="git", capabilities=Capabilities(pull_requests=False))

PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider for provider in (_GIT, LOCAL, GITHUB, GITLAB, GITEA, FORGEJO)
}
"""The providers that kardinal brings, by the name that `git.provider` gives."""
