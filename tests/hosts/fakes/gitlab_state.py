"""The state of a fake GitLab, and what people do there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from tests.hosts.fakes.repository import Conflict, HostedRepository

__all__ = ["ROBOT", "MergeRequest", "Note", "Pipeline", "Project", "Status"]

ROBOT = "project_7_bot"


@dataclass
class Note:
    identifier: int
    author: str
    body: str
    at: datetime
    system: bool = False


@dataclass
class Pipeline:
    """A pipeline of a commit, of a branch or of a merge request, whose `ref` is `refs/merge-requests/1/head`."""

    identifier: int
    sha: str
    ref: str
    project: int = 7


@dataclass
class Status:
    identifier: int
    pipeline: int
    name: str
    state: str
    description: str | None
    target_url: str | None


@dataclass
class MergeRequest:
    """A merge request; `fork` is the id of another project that the head is in."""

    iid: int
    title: str
    description: str
    source: str
    target: str
    author: str
    sha: str
    created_at: datetime
    fork: int | None = None
    state: str = "opened"
    labels: list[str] = field(default_factory=list)
    reviewers: list[int] = field(default_factory=list)
    assignees: list[int] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """The people and labels that were added, as its notes by GitLab show them."""
    notes: list[Note] = field(default_factory=list)
    approved_by: dict[str, datetime] = field(default_factory=dict)
    merged_at: datetime | None = None
    merged_by: str | None = None
    merge_commit_sha: str | None = None
    squash_commit_sha: str | None = None
    rebase_looks: int = 0
    merge_error: str | None = None
    closed_by: str | None = None

    @property
    def is_draft(self) -> bool:
        return self.title.casefold().startswith(("draft:", "[draft]", "(draft)"))


@dataclass
class Project:
    """A project on GitLab with its settings; what is done here is done by a person in a browser."""

    path: str
    git: HostedRepository
    now: Callable[[], datetime]
    identifier: int = 7
    merge_method: str = "merge"
    squash_option: str = "default_off"
    merge_trains: bool = False
    required_statuses: set[str] = field(default_factory=set)
    access_level: int = 30
    archived: bool = False
    merge_requests_access_level: str = "enabled"
    scopes: list[str] = field(default_factory=lambda: ["api", "write_repository"])
    """Those of kardinal's token."""
    unpushable: set[str] = field(default_factory=set)
    """Branches that kardinal's user may not push to."""
    users: dict[str, int] = field(default_factory=lambda: {"alice": 21, "bob": 22, "carol": 23, "mallory": 66})
    strangers: set[str] = field(default_factory=lambda: {"mallory"})
    """Users who may not see the project."""
    takes_several: bool = True
    """Whether its plan allows several reviewers and assignees."""
    says_when_approved: bool = True
    diff_limit: int = 1000
    requests: dict[int, MergeRequest] = field(default_factory=dict)
    statuses: dict[str, list[Status]] = field(default_factory=dict)
    pipelines: list[Pipeline] = field(default_factory=list)
    last_identifier: int = 1000

    def next_identifier(self) -> int:
        """Return a number that nothing else has."""
        self.last_identifier += 1
        return self.last_identifier

    def run(self, sha: str, ref: str, *, project: int = 7) -> Pipeline:
        """Run a pipeline of a commit."""
        self.pipelines.append(Pipeline(self.next_identifier(), sha, ref, project))
        return self.pipelines[-1]

    def head_pipeline(self, request: MergeRequest) -> Pipeline | None:
        """Return the newest pipeline of the head; those of the merge request itself come first."""
        own = f"refs/merge-requests/{request.iid}/"
        found = [one for one in self.pipelines if one.ref.startswith(own) or one.sha == request.sha]
        return max(found, key=lambda one: (one.ref.startswith(own), one.identifier), default=None)

    def open(self, *, source: str, target: str, title: str, description: str, by: str, fork: int | None = None) -> int:
        """Open a merge request, and return its number."""
        iid = len(self.requests) + 1
        sha = (None if fork else self.git.head(source)) or "0" * 40
        self.requests[iid] = MergeRequest(iid, title, description, source, target, by, sha, self.now(), fork)
        return iid

    def follow(self, request: MergeRequest) -> None:
        """Let an open merge request have the commits of its branch."""
        if request.state == "opened" and not request.fork:
            request.sha = self.git.head(request.source) or request.sha

    def status(self, request: MergeRequest) -> str:
        """Return the detailed merge status."""
        self.follow(request)
        if request.state != "opened":
            return "not_open"
        if request.fork or self.git.head(request.source) is None:
            return "broken_status"
        if request.is_draft:
            return "draft_status"
        states = {status.name: status.state for status in self.statuses.get(request.sha, [])}
        if any(states.get(name) != "success" for name in self.required_statuses):
            return "ci_must_pass"
        if not self.git.mergeable(request.target, request.source):
            return "conflict"
        tip = self.git.head(request.target) or ""
        if self.merge_method != "merge" and not self.git.is_ancestor(tip, request.sha):
            return "need_rebase"
        return "mergeable"

    def merge(
        self, iid: int, *, squash: bool, by: str, remove_branch: bool = False, squash_message: str = ""
    ) -> MergeRequest:
        """Merge in the way of the project; raises Conflict."""
        request = self.requests[iid]
        self.follow(request)
        source = request.source
        target = request.target
        squashed = squash_message or request.title
        if self.merge_method == "ff":
            if squash:
                request.squash_commit_sha = self.git.squash(target, source, message=squashed)
            else:
                self.git.merge(target, source, message="", fast_forward=True)
        else:
            merged = source
            if squash:
                request.squash_commit_sha = self.git.squashed(target, source, message=squashed)
                merged = f"tmp-squash-{iid}"
                self.git.point(merged, request.squash_commit_sha)
            message = f"Merge branch '{source}' into '{target}'\n\n{request.title}"
            try:
                request.merge_commit_sha = self.git.merge(target, merged, message=message)
            finally:
                if merged != source:
                    self.git.delete(merged)
        request.state = "merged"
        request.merged_at = self.now()
        request.merged_by = by
        if remove_branch:
            self.git.delete(source)
        return request

    def rebase(self, iid: int) -> None:
        """Rebase the branch, as GitLab does in the background."""
        request = self.requests[iid]
        request.rebase_looks = 3
        request.merge_error = None
        try:
            self.git.rebase_branch(request.target, request.source)
        except Conflict:
            request.merge_error = "Rebase failed: Rebase locally, resolve all conflicts, then push the branch."

    def approve(self, iid: int, username: str) -> None:
        """Approve as a person."""
        request = self.requests[iid]
        request.approved_by[username] = self.now()
        body = "approved this merge request"
        request.notes.append(Note(self.next_identifier(), username, body, self.now(), system=True))
