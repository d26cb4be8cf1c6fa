"""The objects of the GitHub API that are read, validated before use, and their meaning for kardinal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import AwareDatetime, BaseModel, Field

from kardinal.scm.base import CommitStatus, HostAccess, MergeMethod, OpenHead, PullRequest, ReviewApproval, StatusState

__all__ = [
    "ApiCombinedStatus",
    "ApiComment",
    "ApiComparison",
    "ApiIssue",
    "ApiNamedReference",
    "ApiPermission",
    "ApiPullRequest",
    "ApiReference",
    "ApiRepository",
    "ApiReview",
    "ApiUser",
    "latest_approvals",
]

_MERGE_METHODS: tuple[MergeMethod, ...] = ("merge", "squash", "rebase")
_STATES: Mapping[str, StatusState] = {
    "pending": "pending",
    "success": "success",
    "error": "error",
    "failure": "failure",
}
_BEHIND: Mapping[str, bool | None] = {"behind": True, "unknown": None}
"""Mergeable state -> whether the head lacks required commits of the base; None while the host has not decided."""
_DECISIONS = frozenset({"APPROVED", "CHANGES_REQUESTED", "DISMISSED"})


class ApiUser(BaseModel):
    login: str = ""
    type: str = ""


class ApiLabel(BaseModel):
    name: str = ""


class ApiFork(BaseModel):
    full_name: str = ""


class ApiBranch(BaseModel):
    """One side of a pull request; `repo` is None if a fork was deleted."""

    ref: str
    sha: str
    repo: ApiFork | None = None


class ApiPullRequest(BaseModel):
    """A pull request; items of a list lack the last three fields."""

    number: int = Field(gt=0)
    html_url: str
    title: str
    body: str | None = None
    state: str
    created_at: AwareDatetime
    merged_at: AwareDatetime | None = None
    merge_commit_sha: str | None = None
    user: ApiUser | None = None
    labels: list[ApiLabel] = []
    draft: bool = False
    head: ApiBranch
    base: ApiBranch
    mergeable: bool | None = None
    mergeable_state: str = ""
    merged_by: ApiUser | None = None

    @property
    def of_this_repository(self) -> bool:
        """Return whether the head is a branch of the same repository instead of a fork."""
        return self.head.repo is not None and self.head.repo == self.base.repo

    def open_head(self) -> OpenHead:
        return OpenHead(self.number, self.head.sha, self.head.ref, self.base.ref, own=self.of_this_repository)

    def pull_request(self) -> PullRequest:
        """Return the pull request in kardinal's terms.

        While it is open, its merge commit is only a trial and is ignored.
        """
        merged = self.merged_at is not None
        return PullRequest(
            number=self.number,
            url=self.html_url,
            title=self.title,
            body=self.body or "",
            head=self.head.ref,
            base=self.base.ref,
            state="merged" if merged else "closed" if self.state == "closed" else "open",
            created_at=self.created_at,
            labels=tuple(label.name for label in self.labels),
            author=self.user.login if self.user else "",
            head_commit=self.head.sha,
            draft=self.draft,
            mergeable=self.mergeable,
            behind=_BEHIND.get(self.mergeable_state, False) if self.state == "open" else False,
            merged_by=self.merged_by.login if merged and self.merged_by else None,
            merged_at=self.merged_at,
            merge_commit=self.merge_commit_sha if merged else None,
        )


class ApiPermissions(BaseModel):
    pull: bool = False
    push: bool = False


class ApiRepository(BaseModel):
    """The settings of a repository; the merge methods are visible only to users who may push."""

    default_branch: str = ""
    private: bool = True
    archived: bool = False
    has_pull_requests: bool = True
    allow_merge_commit: bool = False
    allow_squash_merge: bool = False
    allow_rebase_merge: bool = False
    permissions: ApiPermissions | None = None

    @property
    def merge_methods(self) -> list[MergeMethod]:
        allowed = (self.allow_merge_commit, self.allow_squash_merge, self.allow_rebase_merge)
        return [method for method, may in zip(_MERGE_METHODS, allowed, strict=True) if may]

    def access(self, granted: Mapping[str, str] | None) -> HostAccess:
        """Return the rights; `granted` are the permissions of an App's token, which the host does not repeat."""
        if granted is not None:
            contents = granted.get("contents", "")
            read = contents in ("read", "write")
            push = contents == "write"
        else:
            read = self.permissions is not None and self.permissions.pull
            push = self.permissions is not None and self.permissions.push
        return HostAccess(
            read=read,
            push=push and not self.archived,
            merge_methods=frozenset(self.merge_methods),
            default_branch=self.default_branch,
            archived=self.archived,
            pull_requests=self.has_pull_requests,
        )


class ApiReview(BaseModel):
    state: str
    user: ApiUser | None = None
    submitted_at: AwareDatetime | None = None
    commit_id: str | None = None


class ApiPermission(BaseModel):
    permission: str = ""

    @property
    def writes(self) -> bool:
        return self.permission in ("admin", "write")


class ApiApp(BaseModel):
    id: int = 0
    client_id: str = ""


class ApiComment(BaseModel):
    id: int
    body: str | None = None
    user: ApiUser | None = None
    performed_via_github_app: ApiApp | None = None

    def is_of(self, *, login: str, app: str | None) -> bool:
        """Return whether the credential's own user wrote the comment: the bot of an App, or the user of a token."""
        if self.user is None:
            return False
        if app is None:
            return self.user.login == login
        via = self.performed_via_github_app
        return self.user.type == "Bot" and via is not None and app in (str(via.id), via.client_id)


class ApiIssue(BaseModel):
    """The issue that belongs to every pull request."""

    closed_by: ApiUser | None = None


class ApiReference(BaseModel):
    class Target(BaseModel):
        sha: str

    object: Target


class ApiNamedReference(ApiReference):
    ref: str


class ApiFile(BaseModel):
    filename: str
    previous_filename: str = ""


class ApiComparison(BaseModel):
    """The changes between two commits; without a difference there are no files."""

    files: list[ApiFile] = []


class ApiStatus(BaseModel):
    state: str
    context: str
    description: str | None = None
    target_url: str | None = None

    def commit_status(self) -> CommitStatus:
        """Return the status in kardinal's terms; an unknown state counts as an error."""
        state = _STATES.get(self.state, "error")
        return CommitStatus(self.context, state, self.description or "", self.target_url or "")


class ApiCombinedStatus(BaseModel):
    statuses: list[ApiStatus] = []


def latest_approvals(reviews: Iterable[ApiReview]) -> list[ReviewApproval]:
    """Return the people whose last decision approves, by time; a comment is no decision."""
    latest: dict[str, tuple[AwareDatetime, ApiReview]] = {}
    for review in reviews:
        if review.user is None or review.submitted_at is None or review.state not in _DECISIONS:
            continue
        before = latest.get(review.user.login)
        if before is None or before[0] <= review.submitted_at:
            latest[review.user.login] = review.submitted_at, review
    approvals = [
        ReviewApproval(login, at, review.commit_id)
        for login, (at, review) in latest.items()
        if review.state == "APPROVED"
    ]
    return sorted(approvals, key=lambda approval: (approval.at, approval.by))
