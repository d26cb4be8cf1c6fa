"""The objects of the Gitea API that are read, validated before use, and their meaning for kardinal."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import AwareDatetime, BaseModel, Field, RootModel

from kardinal.scm.base import CommitStatus, HostAccess, MergeMethod, OpenHead, PullRequest, ReviewApproval, StatusState
from kardinal.scm.values import has_draft_title

__all__ = ["ApiFile", "ApiPullRequest", "ApiRepository", "ApiReview", "ApiStatus", "ApiTimeline", "approvals_of"]

_MERGE_METHODS: tuple[MergeMethod, ...] = ("merge", "squash", "rebase")
_STATES: dict[str, StatusState] = {"pending": "pending", "success": "success", "error": "error", "failure": "failure"}


class ApiUser(BaseModel):
    login: str = ""


class ApiLabel(BaseModel):
    id: int
    name: str


class ApiBranch(BaseModel):
    label: str = ""
    ref: str = ""
    sha: str = ""
    repo_id: int = 0


class ApiPullRequest(BaseModel):
    """A pull request. When a branch is deleted, its `label` keeps the name, while `ref` does not."""

    number: int = Field(gt=0)
    html_url: str
    title: str
    body: str = ""
    state: str
    merged: bool = False
    mergeable: bool = False
    draft: bool | None = None
    created_at: AwareDatetime
    merged_at: AwareDatetime | None = None
    closed_at: AwareDatetime | None = None
    merge_commit_sha: str | None = None
    merged_by: ApiUser | None = None
    user: ApiUser | None = None
    labels: list[ApiLabel] | None = None
    head: ApiBranch
    base: ApiBranch

    @property
    def of_this_repository(self) -> bool:
        """Return whether the head is a branch of the same repository instead of a fork."""
        return self.head.repo_id == self.base.repo_id

    def open_head(self) -> OpenHead:
        return OpenHead(
            self.number,
            self.head.sha,
            self.head.label or self.head.ref,
            self.base.label or self.base.ref,
            own=self.of_this_repository,
        )

    def pull_request(self) -> PullRequest:
        """Return the pull request in kardinal's terms.

        If the host says that it is not mergeable, the host may still be checking, so the result is None.
        """
        return PullRequest(
            number=self.number,
            url=self.html_url,
            title=self.title,
            body=self.body,
            head=self.head.label or self.head.ref,
            base=self.base.label or self.base.ref,
            state="merged" if self.merged else "closed" if self.state == "closed" else "open",
            created_at=self.created_at,
            labels=tuple(label.name for label in self.labels or ()),
            author=self.user.login if self.user else "",
            head_commit=self.head.sha or None,
            draft=has_draft_title(self.title) if self.draft is None else self.draft,
            mergeable=True if self.mergeable else None,
            merged_by=self.merged_by.login if self.merged and self.merged_by else None,
            merged_at=self.merged_at if self.merged else None,
            merge_commit=self.merge_commit_sha if self.merged else None,
        )


class ApiPermissions(BaseModel):
    pull: bool = False
    push: bool = False


class ApiRepository(BaseModel):
    """The settings of a repository, as visible to the credential's user."""

    default_branch: str = ""
    archived: bool = False
    has_pull_requests: bool = True
    allow_merge_commits: bool = False
    allow_squash_merge: bool = False
    allow_rebase: bool = False
    default_merge_style: str = "merge"
    permissions: ApiPermissions = ApiPermissions()

    def access(self) -> HostAccess:
        allowed = (self.allow_merge_commits, self.allow_squash_merge, self.allow_rebase)
        return HostAccess(
            read=self.permissions.pull,
            push=self.permissions.push and not self.archived,
            merge_methods=frozenset(method for method, may in zip(_MERGE_METHODS, allowed, strict=True) if may),
            default_branch=self.default_branch,
            archived=self.archived,
            pull_requests=self.has_pull_requests,
        )


class ApiReview(BaseModel):
    state: str
    user: ApiUser | None = None
    submitted_at: AwareDatetime | None = None
    commit_id: str = ""
    official: bool = False
    dismissed: bool = False


class ApiComment(BaseModel):
    id: int
    body: str = ""
    user: ApiUser | None = None


class ApiComments(RootModel[list[ApiComment]]):
    """All comments of a pull request; the host does not divide them into pages."""


class ApiEvent(BaseModel):
    type: str = ""
    user: ApiUser | None = None


class ApiTimeline(RootModel[list[ApiEvent] | None]):
    """One page of the events of a pull request, oldest first."""


class ApiFile(BaseModel):
    """A changed file; the URL of its contents ends with the commit to which the list belongs."""

    filename: str
    previous_filename: str = ""
    contents_url: str = ""

    def is_of(self, commit: str) -> bool:
        return self.contents_url.endswith(f"?ref={commit}")


class ApiStatus(BaseModel):
    id: int = 0
    status: str
    context: str = ""
    description: str = ""
    target_url: str = ""

    def commit_status(self) -> CommitStatus:
        """Return the status in kardinal's terms; an unknown state counts as an error."""
        state = _STATES.get(self.status, "error")
        return CommitStatus(self.context, state, self.description, self.target_url)


class ApiCombinedStatus(BaseModel):
    statuses: list[ApiStatus] | None = None


def approvals_of(reviews: Iterable[ApiReview]) -> list[ReviewApproval]:
    """Return the present approvals, by time.

    Only official reviews count: those of people who are reviewers by the repository's rules. The last review of a
    person that approves or requests changes decides; a comment changes nothing.
    """
    latest: dict[str, ApiReview] = {}
    for review in reviews:
        if review.user and review.submitted_at and review.state in ("APPROVED", "REQUEST_CHANGES"):
            before = latest.get(review.user.login)
            if before is None or before.submitted_at is None or before.submitted_at <= review.submitted_at:
                latest[review.user.login] = review
    approvals = [
        ReviewApproval(login, review.submitted_at, review.commit_id or None)
        for login, review in latest.items()
        if review.state == "APPROVED" and review.official and not review.dismissed and review.submitted_at
    ]
    return sorted(approvals, key=lambda approval: (approval.at, approval.by))
