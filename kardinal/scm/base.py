"""The protocol of pull requests.

One protocol stands for all providers, and it has only the operations that promotion needs. Every operation is safe to
repeat after a crash: opening adopts the open pull request of the same head, merging a merged and closing a closed pull
request changes nothing, a comment is found again by its marker, and an equal commit status is not written again.

The `Capabilities` of a provider list the operations that it supports; for any other operation it raises
`UnsupportedProvider`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from kardinal.git import BranchSubscription
from kardinal.objects.capabilities import MergeMethod, PullRequestField
from kardinal.tree.commit_message import CommitMessage

__all__ = [
    "Assignments",
    "BranchAccess",
    "CommitStatus",
    "HostAccess",
    "MergeGroup",
    "MergeMethod",
    "Need",
    "NewPullRequest",
    "NoSubscription",
    "OpenHead",
    "PullRequest",
    "PullRequestState",
    "PullRequests",
    "RequestObserver",
    "ReviewApproval",
    "StatusState",
    "Unassigned",
]

PullRequestState = Literal["open", "merged", "closed"]
StatusState = Literal["pending", "success", "failure", "error"]
Need = Literal["pull-requests", "statuses", "teams"]
"""A use of a host's API: pull requests with their labels and comments, commit statuses, or teams as reviewers."""

RequestObserver = Callable[[str, str], None]
"""Called as (endpoint, status) after each request.

Status is the number of an HTTP answer or the name of an error, and `ok` for a provider without HTTP.
"""


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """A proposal to merge branch `head` into branch `base`, and the promotion it belongs to.

    `draft`: it is opened as a draft. If the host marks drafts in the title, the title starts with the host's prefix.
    """

    title: str
    body: str
    head: str
    base: str
    labels: tuple[str, ...] = ()
    draft: bool = False
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignments:
    """The people to assign to a pull request, by their names at the host, and labels for people.

    A team is `platform`, or `acme/platform` with the organisation, which must be the owner of the repository.
    """

    reviewers: tuple[str, ...] = ()
    team_reviewers: tuple[str, ...] = ()
    assignees: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unassigned:
    """A name of `Assignments` that a host does not accept, and the reason."""

    field: PullRequestField
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as its provider reports it at one moment.

    `head_commit` is the commit that would be merged, or was. `merge_commit` and `merged_at` are None unless `state` is
    `merged`: the commit on the base branch with which the change landed, by any merge method, and the time. `mergeable`
    is None if the provider does not know, or has not decided yet. `behind`: the host requires that the head contains
    every commit of the base, and some are missing; None while the host is still comparing. `draft`: a person has marked
    it as not ready, in a field of the host or by a prefix of the title. `comments` and the last three fields are set
    only by provider `local`.
    """

    number: int
    url: str
    title: str
    body: str
    head: str
    base: str
    state: PullRequestState
    created_at: datetime
    labels: tuple[str, ...] = ()
    author: str = ""
    head_commit: str | None = None
    draft: bool = False
    mergeable: bool | None = None
    behind: bool | None = False
    merged_by: str | None = None
    merged_at: datetime | None = None
    merge_commit: str | None = None
    comments: tuple[str, ...] = ()
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""


@dataclass(frozen=True, slots=True)
class ReviewApproval:
    """A review that approves and still counts: the user, the time, and the commit if the provider reports it."""

    by: str
    at: datetime
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """The state of a commit for one check, which the host shows under the name `context`."""

    context: str
    state: StatusState
    description: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class OpenHead:
    """The head of an open pull request in the list of all, including those from forks.

    `own`: `branch` is a branch of the repository itself; a branch of a fork may have any name.
    """

    number: int
    commit: str
    branch: str
    base: str
    own: bool


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """A commit that a merge queue has created to test pull request `number` with those before it."""

    commit: str
    base: str
    number: int


@dataclass(frozen=True, slots=True)
class HostAccess:
    """The rights of a credential on the repository, and the relevant settings of the repository.

    `merge_methods` is empty if the host does not show them. `pull_requests`: the repository has pull requests enabled.
    `lacks`: permissions that the credential is known to lack, in the host's words (`write:issue`).
    """

    read: bool
    push: bool
    merge_methods: frozenset[MergeMethod]
    default_branch: str = ""
    archived: bool = False
    pull_requests: bool = True
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BranchAccess:
    """The rights of a credential to push and to merge into one branch; None if the host does not report them."""

    push: bool | None = None
    merge: bool | None = None


class NoSubscription:
    """The subscription of a provider that never calls back."""

    def close(self) -> None:
        """Do nothing."""


class PullRequests(Protocol):
    """The pull requests of one repository."""

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head.

        An adopted pull request keeps its text. Raises `NothingToMerge` if the base contains all commits of the head,
        and a transient `PullRequestNotFound` if the host reported success but does not show the pull request.
        """
        ...

    async def get(self, number: int) -> PullRequest:
        """Return one pull request; `PullRequestNotFound` is transient while the host may not show it yet."""
        ...

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """Return all pull requests, or those in one state, by number."""
        ...

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, including those from forks, by number."""
        ...

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits that the merge queues of the repository are testing; empty if the host has no queues."""
        ...

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the old and new paths of all files that a commit proposes to change on a branch.

        `commit` is the head of open pull request `number`, or of its merge group. None: the host does not list all
        files, or lists those of another commit.
        """
        ...

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`, in any state."""
        ...

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change the given fields that differ; only kardinal's own labels are removed."""
        ...

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add people and labels to a pull request, except people who are assigned or have reviewed already.

        A name that the host refuses for good does not prevent the others. Called only for a provider with
        `Capabilities.pull_request_fields`.
        """
        ...

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Create the only comment with `marker`, or edit it if its text differs.

        Only comments of the credential's own user count, so that comments of others are neither found nor changed.
        """
        ...

    async def merge(
        self,
        number: int,
        *,
        by: str,
        method: MergeMethod | None = None,
        expected_head: str | None = None,
        message: CommitMessage | None = None,
    ) -> PullRequest:
        """Merge, unless it is merged already.

        `by` is recorded by providers that do not know the user. `message` is the message of the single commit of a
        squash, because the hosts' own messages lack the trailers of the proposal's commit. Raises `HeadMoved` if the
        head is no longer `expected_head`, `BehindBase` while the host requires commits of the base in the head,
        `MergeBlocked` while other rules of the host hold it, `kardinal.git.MergeConflict` if it conflicts with its
        base, `PullRequestEnded` if it is closed.
        """
        ...

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Make the host bring the commits of the base into the head, by a merge or a rebase; the head may move later.

        Raises `HeadMoved` if the host reports that the head is no longer `expected_head`, and
        `kardinal.git.MergeConflict` if it conflicts with the base.
        """
        ...

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already; raises `PullRequestEnded` if it is merged."""
        ...

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return the approvals that count, one per person, by time."""
        ...

    async def closed_by(self, number: int) -> str | None:
        """Return the name of the person who last closed a pull request; None if the host does not report it."""
        ...

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        ...

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless the commit has it already; return whether it was written.

        A status that is not `urgent` waits until no promotion needs a request to the host.
        """
        ...

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return the rights of the credential on the repository; only the permissions for `needs` are checked.

        Nothing is changed, not even at hosts that show a missing permission only by a refusal.
        """
        ...

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the credential on a branch; all None if the branch does not exist."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> BranchSubscription:
        """Call `callback` when a pull request may have changed; the caller then has to look again."""
        ...
