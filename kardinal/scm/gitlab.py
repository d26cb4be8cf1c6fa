"""Provider `gitlab`: merge requests through the REST API, version 4, of gitlab.com or a self-managed GitLab.

    https://host/group/subgroup/project  ->  https://host/api/v4/projects/group%2Fsubgroup%2Fproject

Merging is in `kardinal.scm.gitlab_merges`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kardinal.objects.capabilities import Capabilities
from kardinal.scm.addresses import RepositoryAddress, quoted
from kardinal.scm.base import (
    Assignments,
    BranchAccess,
    CommitStatus,
    HostAccess,
    MergeGroup,
    Need,
    NewPullRequest,
    OpenHead,
    PullRequest,
    PullRequests,
    PullRequestState,
    ReviewApproval,
    Unassigned,
)
from kardinal.scm.comments import is_marked
from kardinal.scm.errors import (
    NothingToMerge,
    UnsupportedProvider,
)
from kardinal.scm.gitlab_access import GitLabAccess
from kardinal.scm.gitlab_answers import ANSWERS, PERMISSIONS
from kardinal.scm.gitlab_assigning import GitLabAssigning
from kardinal.scm.gitlab_commits import GitLabCommits
from kardinal.scm.gitlab_merges import GitLabMerges
from kardinal.scm.gitlab_values import (
    ApiApprovals,
    ApiComparison,
    ApiMergeRequest,
    ApiNote,
    ApiUser,
    approvals_of,
)
from kardinal.scm.gitlab_webhooks import parse_webhook
from kardinal.scm.hosted import Comment, HostedPullRequests
from kardinal.scm.http import Host, HostAuthenticator, HostClient, Outcome, Priority, Rate, StaticToken
from kardinal.scm.provider import Provider, RepositoryHost
from kardinal.scm.values import draft_title, parsed

__all__ = ["GITLAB", "GitLabCalls"]

_RATE = Rate(per_second=10.0, burst=40)
_PAGE = "100"
_USER = "oauth2"
_DRAFT = "Draft:"
_LISTED: Mapping[PullRequestState | None, str] = {"open": "opened", "merged": "merged", "closed": "closed", None: "all"}


class GitLabCalls:
    """The `HostCalls` of one project."""

    noun = "merge request"

    def __init__(self, client: HostClient, *, project: str) -> None:
        self._client = client
        self._path = f"/projects/{quoted(project)}"
        self._commits = GitLabCommits(client, self._path)
        self.merges = GitLabMerges(client, self._path)
        self._access = GitLabAccess(client, self._path)
        self._assigning = GitLabAssigning(client, self._path)

    @property
    def host(self) -> str:
        """Return the name of the host."""
        return self._client.host.name

    async def create(self, new: NewPullRequest) -> PullRequest | None:
        """Open a merge request.

        An empty merge request, which GitLab would allow, is not opened.
        """
        age = self._age(f"{new.head}\n{new.base}")
        query = {"from": new.base, "to": new.head}
        compared = await self._client.request(
            "compare", "GET", f"{self._path}/repository/compare", query=query, age=age
        )
        if not parsed(ApiComparison, compared.value).commits:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        body = {
            "title": draft_title(_DRAFT, new),
            "description": new.body,
            "source_branch": new.head,
            "target_branch": new.base,
            "labels": ",".join(new.labels),
            "remove_source_branch": True,
        }
        answer = await self._client.request("open", "POST", f"{self._path}/merge_requests", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            return None
        number = parsed(ApiMergeRequest, answer.value).iid
        # If the host reported success but has no such merge request, opening is retried and finds it if it was created.
        return (await self.get("get", number)).pull_request()

    async def adopted(self, found: PullRequest, new: NewPullRequest) -> PullRequest:
        """Add the labels."""
        missing = [name for name in new.labels if name not in found.labels]
        return await self._changed(found.number, {"add_labels": ",".join(missing)}) if missing else found

    async def get(self, operation: str, number: int) -> ApiMergeRequest:
        """Return one merge request."""
        answer = await self._client.request(operation, "GET", self._one(number), age=self._age(str(number)))
        return parsed(ApiMergeRequest, answer.value)

    async def listed(self, state: PullRequestState | None) -> Sequence[PullRequest]:
        """Return all merge requests, or those in one state, without those from forks."""
        query = {"state": _LISTED[state], "per_page": _PAGE}
        pages = self._client.pages("list", f"{self._path}/merge_requests", query=query, priority=Priority.POLL)
        found = [parsed(ApiMergeRequest, item) async for item in pages]
        return [one.pull_request() for one in found if one.of_this_project]

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open merge request, including those from forks; the request is the same as that of `listed`."""
        query = {"state": "opened", "per_page": _PAGE}
        pages = self._client.pages("list", f"{self._path}/merge_requests", query=query, priority=Priority.POLL)
        return [parsed(ApiMergeRequest, item).open_head() async for item in pages]

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return an empty list: a merge train waits for its own pipelines, and cannot require a status by name."""
        return ()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Compare by commit, because the merge request may show the files of a later commit."""
        query = {"from": base, "to": commit}
        age = self._age(commit)
        path = f"{self._path}/repository/compare"
        answer = await self._client.request("files", "GET", path, query=query, priority=Priority.POLL, age=age)
        return parsed(ApiComparison, answer.value).paths

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest merge request from branch `head` of this project to branch `base`."""
        query = {
            "source_branch": head,
            "target_branch": base,
            "state": "all",
            "order_by": "created_at",
            "sort": "desc",
            "per_page": _PAGE,
        }
        async for item in self._client.pages("find", f"{self._path}/merge_requests", query=query):
            found = parsed(ApiMergeRequest, item)
            if found.of_this_project and (found.source_branch, found.target_branch) == (head, base):
                return found.pull_request()
        return None

    async def change(
        self, found: ApiMergeRequest, *, texts: Mapping[str, str], add: Sequence[str], remove: Sequence[str]
    ) -> PullRequest:
        """Change texts and labels in one request."""
        changed = {"description" if name == "body" else name: text for name, text in texts.items()}
        changed |= {"add_labels": ",".join(add)} if add else {}
        changed |= {"remove_labels": ",".join(remove)} if remove else {}
        return await self._changed(found.iid, changed) if changed else found.pull_request()

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add people and labels."""
        return await self._assigning.assign(number, wanted)

    async def own_comment(self, number: int, *, marker: str) -> Comment | None:
        """Return the note with `marker` of the credential's own user; None if there is none."""
        own = parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).username
        for note in await self._notes("comment", number):
            if not note.system and note.author and note.author.username == own and is_marked(note.body or "", marker):
                return Comment(note.id, note.body or "")
        return None

    async def add_comment(self, number: int, text: str) -> None:
        """Write a note."""
        path = f"{self._one(number)}/notes"
        await self._client.request("comment", "POST", path, body={"body": text}, age=self._age(str(number)))

    async def edit_comment(self, number: int, comment: Comment, text: str) -> None:
        """Change the text of a note."""
        path = f"{self._one(number)}/notes/{comment.id}"
        await self._client.request("comment", "PUT", path, body={"body": text}, age=self._age(str(number)))

    async def mark_closed(self, number: int) -> None:
        """Close an open merge request."""
        await self._put("close", number, {"state_event": "close"})

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return the approvals that count, one per person, by time."""
        age = self._age(str(number))
        answer = await self._client.request("approvals", "GET", f"{self._one(number)}/approvals", age=age)
        approvals = parsed(ApiApprovals, answer.value)
        if all(one.approved_at for one in approvals.approved_by):
            return approvals_of(approvals, [], otherwise=self._client.clock.now())
        found = await self.get("approvals", number)
        notes = await self._notes("approvals", number)
        return approvals_of(approvals, notes, otherwise=found.updated_at or found.created_at)

    async def closed_by(self, number: int) -> str | None:
        """Return who last closed a merge request."""
        user = (await self.get("get", number)).closed_by
        return (user.username or None) if user else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each name of a commit."""
        return await self._commits.statuses(commit)

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool:
        """Write a status unless its pipeline has it already; a long description is cut."""
        return await self._commits.set_status(commit, status, priority)

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return the rights of the credential on the project."""
        return await self._access.access(needs)

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the credential on a branch."""
        return await self._access.branch_access(branch)

    async def _notes(self, operation: str, number: int) -> Sequence[ApiNote]:
        query = {"sort": "asc", "order_by": "created_at", "per_page": _PAGE}
        pages = self._client.pages(operation, f"{self._one(number)}/notes", query=query, age=self._age(str(number)))
        return [parsed(ApiNote, item) async for item in pages]

    async def _changed(self, number: int, changed: Mapping[str, Any]) -> PullRequest:
        return (await self._put("update", number, changed)).pull_request()

    async def _put(self, operation: str, number: int, changed: Mapping[str, Any]) -> ApiMergeRequest:
        answer = await self._client.request(
            operation, "PUT", self._one(number), body=changed, age=self._age(str(number))
        )
        return parsed(ApiMergeRequest, answer.value)

    def _one(self, number: int) -> str:
        return f"{self._path}/merge_requests/{number}"

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def connect(target: RepositoryHost) -> PullRequests:
    """Return the merge requests of a project."""
    address = RepositoryAddress.of(target.url)
    if len(address.segments) < 2:
        raise UnsupportedProvider(
            f"{target.url} names no project", remedy="Write git.url as https://host/group/project"
        )
    host = Host(base=f"{address.origin}/api/v4", rate=_RATE, table=ANSWERS, permissions=PERMISSIONS)
    calls = GitLabCalls(target.client(host), project="/".join(address.segments))
    return HostedPullRequests(calls, calls.merges)


def authenticate(values: Mapping[str, str], target: RepositoryHost) -> HostAuthenticator | None:
    """Return the authenticator of a Secret with `token`; a `password` counts as a token, as for Git."""
    username, password, token = (values.get(key, "").rstrip("\r\n") for key in ("username", "password", "token"))
    secret = token or (password if username else "")
    return StaticToken(username or _USER, secret, ("PRIVATE-TOKEN", secret)) if secret else None


GITLAB = Provider(
    name="gitlab",
    capabilities=Capabilities(
        pull_requests=True,
        statuses=True,
        compares_branches=True,
        merge_methods=frozenset({"merge", "squash", "rebase"}),
        webhooks=True,
        pull_request_fields=frozenset({"reviewers", "assignees", "labels", "draft"}),
    ),
    connect=connect,
    authenticate=authenticate,
    parse_webhook=parse_webhook,
)
