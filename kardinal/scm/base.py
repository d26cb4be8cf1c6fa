"""The protocol of pull requests.

One protocol stands for all providers. It says only what promotion needs. Every operation is safe to repeat after a
crash: opening adopts the open pull request of the same head, merging what is merged and closing what is closed changes
nothing, a comment is found again by its marker, and a commit status that says the same already is not written.

What a provider cannot do is said by its `Capabilities`; asked for it all the same, it raises `UnsupportedProvider`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from kardinal.git import Subscription
from kardinal.steps.capabilities import MergeMethod
from kardinal.steps.commit_message import CommitMessage

__all__ = [
    "LABEL",
    "Access",
    "Approval",
    "BranchAccess",
    "CommitStatus",
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
    "StatusState",
    "is_own_label",
]

PullRequestState = Literal["open", "merged", "closed"]
StatusState = Literal["pending", "success", "failure", "error"]
Need = Literal["pull-requests", "statuses"]
"""A use of a host's API by a Pipeline: pull requests with their labels and comments, or commit statuses."""

RequestObserver = Callable[[str, str], None]
"""Called as (endpoint, status) after each request.

Status is the number of an HTTP answer or the name of an error, and `ok` where no HTTP is spoken.
"""

LABEL = "kardinal"


def is_own_label(name: str) -> bool:
    """Return whether a label is kardinal's to put on and take off; the others belong to people."""
    return name == LABEL or name.startswith(f"{LABEL}/")


@dataclass(frozen=True, slots=True)
class NewPullRequest:
    """A proposal to merge branch `head` into branch `base`, and the promotion it belongs to."""

    title: str
    body: str
    head: str
    base: str
    labels: tuple[str, ...] = ()
    environment: str = ""
    bundle: str = ""
    pipeline: str = ""


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request as its provider knows it at one moment.

    `head_commit` is the commit that would be merged, or was. `merge_commit` and `merged_at` are None unless `state` is
    `merged`: the commit on the base branch with which the change landed, whatever the method, and when. `mergeable` is
    None where the provider does not know, or has not decided yet. `behind`: the host merges it only with every commit
    of the base in its head, and some are missing; None while the host is still comparing. `draft`: a person has said
    that it is not to be merged, whether the host keeps that in a field or as a prefix of the title. `comments` and the
    last three fields are known to provider `local` alone.
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
class Approval:
    """A review that approves and still counts: by whom, when, and of which commit where the provider says so."""

    by: str
    at: datetime
    commit: str | None = None


@dataclass(frozen=True, slots=True)
class CommitStatus:
    """A statement about a commit, shown by the host under the name `context`."""

    context: str
    state: StatusState
    description: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class OpenHead:
    """An open pull request as the list of all shows it, from a fork or not: its head, and the branch it goes to.

    `own`: `branch` is one of the repository itself. A branch of a fork may have any name.
    """

    number: int
    commit: str
    branch: str
    base: str
    own: bool


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """A commit that a merge queue has made to test pull request `number` with those before it."""

    commit: str
    base: str
    number: int


@dataclass(frozen=True, slots=True)
class Access:
    """The rights of a credential on the repository, and what the repository's settings allow.

    `merge_methods` is empty where the host does not show them. `pull_requests`: the repository has them switched on.
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
    """The rights of a credential on one branch, to push and to merge into it; None where the host does not tell."""

    push: bool | None = None
    merge: bool | None = None


class NoSubscription:
    """The subscription of a provider that never calls back by itself."""

    def close(self) -> None:
        """Do nothing."""


class PullRequests(Protocol):
    """The pull requests of one repository."""

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head.

        One that is adopted keeps its text. Raises `NothingToMerge` when the base has all of the head's commits, and
        `PullRequestNotFound`, which is transient, when the host answered with success and shows nothing.
        """
        ...

    async def get(self, number: int) -> PullRequest:
        """Return one pull request; `PullRequestNotFound` is transient while the host may not show it yet."""
        ...

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """All pull requests, or those in one state, by number."""
        ...

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, those from forks too, by number."""
        ...

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits that the merge queues of the repository test now; none where the host has no queues."""
        ...

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the paths that a commit proposes to change on a branch, as they were and as they are to be.

        `commit` is the head of open pull request `number`, or of its merge group. None: the host does not list all of
        them, or lists those of another commit.
        """
        ...

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`, in whatever state."""
        ...

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change what is given and differs; of the labels, only kardinal's own are taken off."""
        ...

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the one comment of `marker`: made once, edited when its text differs, left alone otherwise.

        Only a comment of the credential's own user counts, so that the text of others is neither found nor changed.
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

        `by` is noted by providers that do not know who asks. `message` is that of the one commit which a squash makes:
        hosts compose theirs without the trailers of the proposal's commit. Raises `HeadMoved` when the head is no
        longer `expected_head`, `BehindBase` while the base has commits that the host wants in the head,
        `MergeBlocked` while other rules of the host hold it, `kardinal.git.MergeConflict` when it
        conflicts with its base, `PullRequestEnded` when it is closed.
        """
        ...

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Have the host bring the commits of the base into the head, by a merge or a rebase; the head may move later.

        Raises `HeadMoved` where the host can tell that the head is no longer `expected_head`, and
        `kardinal.git.MergeConflict` where it conflicts with the base.
        """
        ...

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already; raises `PullRequestEnded` when it is merged."""
        ...

    async def approvals(self, number: int) -> Sequence[Approval]:
        """Return the approvals that count, one per person, by time."""
        ...

    async def closed_by(self, number: int) -> str | None:
        """Return the name of the person who closed a pull request last; None where the host does not say."""
        ...

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        ...

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless the commit has it already; return whether it was written.

        One that is not `urgent` waits until no promotion has anything to ask of the host.
        """
        ...

    async def access(self, needs: Collection[Need] = ()) -> Access:
        """Return what the credential may do with the repository; only permissions for `needs` are asked for.

        Nothing is changed, also where a host shows a missing permission by a refusal alone.
        """
        ...

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return what the credential may do with a branch; nothing is known of one that does not exist."""
        ...

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Call back when something may have changed; it says only that another look is worth it."""
        ...
