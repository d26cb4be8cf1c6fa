"""The objects of the GitLab API that are read, validated before use, and their meaning for kardinal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import AwareDatetime, BaseModel, Field

from kardinal.scm.base import CommitStatus, HostAccess, MergeMethod, OpenHead, PullRequest, ReviewApproval, StatusState
from kardinal.scm.values import has_draft_title

__all__ = [
    "SENT_STATES",
    "ApiApprovals",
    "ApiCommit",
    "ApiComparison",
    "ApiMergeRequest",
    "ApiNote",
    "ApiProject",
    "ApiStatus",
    "ApiUser",
    "approvals_of",
    "newest_statuses",
]

_DEVELOPER = 30
_REPORTER = 20
"""https://docs.gitlab.com/api/members/#roles"""

_STATES: Mapping[str, StatusState] = {"success": "success", "failed": "failure", "canceled": "error"}
SENT_STATES: Mapping[StatusState, str] = {
    "pending": "pending",
    "success": "success",
    "failure": "failed",
    "error": "canceled",
}
_BEHIND: Mapping[str, bool | None] = {"need_rebase": True, "unchecked": None, "checking": None, "preparing": None}
"""Merge status -> whether the branch must be rebased; None while the host has not decided."""
_APPROVED = "approved this merge request"


class ApiUser(BaseModel):
    username: str = ""


class ApiPipeline(BaseModel):
    id: int = Field(gt=0)
    sha: str
    ref: str = Field(max_length=255)
    project_id: int | None = None


class ApiMergeRequest(BaseModel):
    """A merge request. `sha` is the head of its branch, and follows the branch while it is open."""

    iid: int = Field(gt=0)
    web_url: str
    title: str
    description: str | None = None
    state: str
    created_at: AwareDatetime
    updated_at: AwareDatetime | None = None
    merged_at: AwareDatetime | None = None
    merge_user: ApiUser | None = None
    merged_by: ApiUser | None = None
    closed_by: ApiUser | None = None
    author: ApiUser | None = None
    labels: list[str] = []
    draft: bool | None = None
    source_branch: str
    target_branch: str
    source_project_id: int | None = None
    target_project_id: int | None = None
    sha: str | None = None
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    detailed_merge_status: str = ""
    has_conflicts: bool | None = None
    rebase_in_progress: bool = False
    merge_error: str | None = None
    head_pipeline: ApiPipeline | None = None

    @property
    def of_this_project(self) -> bool:
        """Return whether the head is a branch of the same project instead of a fork."""
        return self.source_project_id is not None and self.source_project_id == self.target_project_id

    @property
    def conflicts(self) -> bool:
        return self.detailed_merge_status == "conflict"

    @property
    def needs_rebase(self) -> bool:
        return self.detailed_merge_status == "need_rebase"

    def open_head(self) -> OpenHead:
        own = self.of_this_project
        return OpenHead(self.iid, self.sha or "", self.source_branch, self.target_branch, own=own)

    def pull_request(self) -> PullRequest:
        """Return the merge request in kardinal's terms.

        Its merge commit is the squash commit, or else the merge commit, or else the head.
        """
        merged = self.state == "merged"
        by = self.merge_user or self.merged_by
        mergeable = {"mergeable": True, "conflict": False}.get(self.detailed_merge_status)
        return PullRequest(
            number=self.iid,
            url=self.web_url,
            title=self.title,
            body=self.description or "",
            head=self.source_branch,
            base=self.target_branch,
            state="merged" if merged else "closed" if self.state == "closed" else "open",
            created_at=self.created_at,
            labels=tuple(self.labels),
            author=self.author.username if self.author else "",
            head_commit=self.sha,
            draft=has_draft_title(self.title) if self.draft is None else self.draft,
            mergeable=None if merged else mergeable,
            behind=_BEHIND.get(self.detailed_merge_status, False) if self.state == "opened" else False,
            merged_by=by.username if merged and by else None,
            merged_at=self.merged_at if merged else None,
            merge_commit=(self.squash_commit_sha or self.merge_commit_sha or self.sha) if merged else None,
        )


class ApiAccessLevel(BaseModel):
    access_level: int = 0


class ApiPermissions(BaseModel):
    project_access: ApiAccessLevel | None = None
    group_access: ApiAccessLevel | None = None

    @property
    def level(self) -> int:
        return max(one.access_level if one else 0 for one in (self.project_access, self.group_access))


class ApiProject(BaseModel):
    """The settings of a project, which has one merge method, with or without squashing."""

    default_branch: str | None = None
    archived: bool = False
    merge_requests_access_level: str = "enabled"
    merge_method: Literal["merge", "rebase_merge", "ff"] = "merge"
    squash_option: str = "default_off"
    merge_trains_enabled: bool | None = None
    permissions: ApiPermissions = ApiPermissions()

    @property
    def merge_methods(self) -> frozenset[MergeMethod]:
        plain: MergeMethod = "rebase" if self.merge_method == "ff" else "merge"
        allowed: set[MergeMethod] = {plain, "squash"}
        allowed -= {"squash"} if self.squash_option == "never" else set()
        allowed -= {plain} if self.squash_option == "always" else set()
        return frozenset(allowed)

    def access(self) -> HostAccess:
        return HostAccess(
            read=self.permissions.level >= _REPORTER,
            push=self.permissions.level >= _DEVELOPER and not self.archived,
            merge_methods=self.merge_methods,
            default_branch=self.default_branch or "",
            archived=self.archived,
            pull_requests=self.merge_requests_access_level != "disabled",
        )


class ApiCommit(BaseModel):
    """A commit with the fields that a rebase keeps."""

    message: str = ""
    author_email: str = ""
    authored_date: str = ""


class ApiDiff(BaseModel):
    old_path: str
    new_path: str


class ApiComparison(BaseModel):
    """The comparison of two commits. With `compare_timeout`, not all files are listed."""

    commits: list[ApiCommit] = []
    diffs: list[ApiDiff] = []
    compare_timeout: bool = False

    @property
    def paths(self) -> list[str] | None:
        """Return every path that differs; None if some are missing."""
        if self.compare_timeout:
            return None
        return [path for diff in self.diffs for path in (diff.old_path, diff.new_path)]


class ApiNote(BaseModel):
    id: int
    body: str | None = None
    system: bool = False
    author: ApiUser | None = None
    created_at: AwareDatetime | None = None


class ApiApproval(BaseModel):
    user: ApiUser
    approved_at: AwareDatetime | None = None


class ApiApprovals(BaseModel):
    approved_by: list[ApiApproval] = []


class ApiStatus(BaseModel):
    """A status; an older GitLab does not report its pipeline."""

    id: int = 0
    pipeline_id: int | None = None
    name: str
    status: str
    description: str | None = None
    target_url: str | None = None

    def commit_status(self) -> CommitStatus:
        """Return the status in kardinal's terms; an unfinished one is pending."""
        state = _STATES.get(self.status, "pending")
        return CommitStatus(self.name, state, self.description or "", self.target_url or "")

    def may_be_in(self, pipeline: int | None) -> bool:
        """Return whether the status belongs to a pipeline, as far as both are known."""
        return pipeline is None or self.pipeline_id in (None, pipeline)


def newest_statuses(statuses: Iterable[ApiStatus]) -> dict[str, ApiStatus]:
    """Return the newest status of each name, because a commit may have several pipelines."""
    return {one.name: one for one in sorted(statuses, key=lambda one: one.id)}


def approvals_of(
    approvals: ApiApprovals, notes: Iterable[ApiNote], *, otherwise: AwareDatetime
) -> list[ReviewApproval]:
    """Return the present approvals, by time.

    An older GitLab does not report the time in the approval; then the time of its system note is used, or `otherwise`
    without a note.
    """
    noted = {
        note.author.username: note.created_at
        for note in notes
        if note.system and note.author and note.created_at and (note.body or "").strip() == _APPROVED
    }
    found = [
        ReviewApproval(one.user.username, one.approved_at or noted.get(one.user.username) or otherwise)
        for one in approvals.approved_by
    ]
    return sorted(found, key=lambda approval: (approval.at, approval.by))
