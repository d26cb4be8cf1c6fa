"""Pull requests, with one module per provider behind one protocol.

    pull_requests = PROVIDERS["github"].connect(target)
    opened = await pull_requests.open(NewPullRequest(title, body, head="kardinal/team-a/…", base="main"))
base, provider, errors         the protocol of pull requests, the table entry of a provider, the tree of errors
hosted                         the workflow of a pull request at a host, over the calls in which hosts differ
github, gitlab, gitea, forgejo, local   one provider each, with parts such as `github_values` and `github_access`
webhooks, values, comments, assigning, addresses   functions that the providers share
http                           sessions, budgets and the meaning of answers
"""

from collections.abc import Mapping

from kardinal.objects.capabilities import Capabilities
from kardinal.scm.base import (
    Assignments,
    BranchAccess,
    CommitStatus,
    HostAccess,
    MergeGroup,
    MergeMethod,
    Need,
    NewPullRequest,
    OpenHead,
    PullRequest,
    PullRequests,
    PullRequestState,
    RequestObserver,
    ReviewApproval,
    Unassigned,
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
from kardinal.scm.provider import Provider, RepositoryHost
from kardinal.scm.webhooks import Delivery

__all__ = [
    "PROVIDERS",
    "AccessDenied",
    "Assignments",
    "BehindBase",
    "BranchAccess",
    "CommitStatus",
    "ConflictWithBase",
    "Delivery",
    "HeadMoved",
    "HostAccess",
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
    "RepositoryHost",
    "RequestObserver",
    "RequestRefused",
    "ReviewApproval",
    "StatusesFull",
    "Unassigned",
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
