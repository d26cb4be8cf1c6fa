"""Provider `gitlab`: merge requests by the REST API, version 4, of gitlab.com or a GitLab of one's own.

    https://host/group/subgroup/project  ->  https://host/api/v4/projects/group%2Fsubgroup%2Fproject

Merging is in `kardinal.scm.gitlab_merges`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kardinal.git import Subscription
from kardinal.scm.addresses import RepositoryAddress, quoted
from kardinal.scm.base import (
    Access,
    Approval,
    BranchAccess,
    CommitStatus,
    MergeGroup,
    MergeMethod,
    Need,
    NewPullRequest,
    NoSubscription,
    OpenHead,
    PullRequest,
    PullRequests,
    PullRequestState,
    is_own_label,
)
from kardinal.scm.comments import is_marked, marked
from kardinal.scm.errors import (
    NothingToMerge,
    PullRequestEnded,
    UnknownAnswer,
    UnsupportedProvider,
)
from kardinal.scm.gitlab_access import GitLabAccess
from kardinal.scm.gitlab_answers import ANSWERS, PERMISSIONS
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
from kardinal.scm.http import Authenticator, Host, HostClient, Outcome, Priority, Rate, StaticToken
from kardinal.scm.provider import Provider, Target
from kardinal.scm.values import parsed, same_text
from kardinal.steps.capabilities import Capabilities
from kardinal.steps.commit_message import CommitMessage

__all__ = ["GITLAB", "GitLabMergeRequests"]

_RATE = Rate(per_second=10.0, burst=40)
_PAGE = "100"
_USER = "oauth2"
_LISTED: Mapping[PullRequestState | None, str] = {"open": "opened", "merged": "merged", "closed": "closed", None: "all"}


class GitLabMergeRequests:
    """The merge requests of one project."""

    def __init__(self, client: HostClient, *, project: str) -> None:
        self._client = client
        self._path = f"/projects/{quoted(project)}"
        self._commits = GitLabCommits(client, self._path)
        self._merges = GitLabMerges(client, self._path)
        self._access = GitLabAccess(client, self._path)

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a merge request, or adopt the open one with the same head; GitLab would open an empty one as well."""
        age = self._age(f"{new.head}\n{new.base}")
        query = {"from": new.base, "to": new.head}
        compared = await self._client.request(
            "compare", "GET", f"{self._path}/repository/compare", query=query, age=age
        )
        if not parsed(ApiComparison, compared.value).commits:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        body = {
            "title": new.title,
            "description": new.body,
            "source_branch": new.head,
            "target_branch": new.base,
            "labels": ",".join(new.labels),
            "remove_source_branch": True,
        }
        answer = await self._client.request("open", "POST", f"{self._path}/merge_requests", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            found = await self.find(new.head, base=new.base)
            if found is None or found.state != "open":
                raise UnknownAnswer(f"{self._client.host.name} has a merge request of {new.head}, and does not show it")
            return await self.update(found.number, labels=[*found.labels, *new.labels])
        number = parsed(ApiMergeRequest, answer.value).iid
        # Answered with success and not made, it is opened again, which finds what was made by then.
        return (await self._get("get", number)).pull_request()

    async def get(self, number: int) -> PullRequest:
        """Return one merge request."""
        return (await self._get("get", number)).pull_request()

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """All merge requests, or those in one state, by number; those from forks are left out."""
        query = {"state": _LISTED[state], "per_page": _PAGE}
        pages = self._client.pages("list", f"{self._path}/merge_requests", query=query, priority=Priority.POLL)
        found = [parsed(ApiMergeRequest, item) async for item in pages]
        return sorted((one.pull_request() for one in found if one.of_this_project), key=lambda one: one.number)

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open merge request, those from forks too; the same list as `list` asks for."""
        query = {"state": "opened", "per_page": _PAGE}
        pages = self._client.pages("list", f"{self._path}/merge_requests", query=query, priority=Priority.POLL)
        found = [parsed(ApiMergeRequest, item).open_head() async for item in pages]
        return sorted((one for one in found if one.commit), key=lambda one: one.number)

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return none: a merge train waits for its own pipelines, and cannot require a status by name."""
        return ()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Compare by commit: what a merge request shows under its number may be of a later one."""
        query, age = {"from": base, "to": commit}, self._age(commit)
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

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change what is given and differs, in one request."""
        found = (await self._get("update", number)).pull_request()
        given, there = {"title": title, "description": body}, {"title": found.title, "description": found.body}
        changed: dict[str, Any] = {
            name: text for name, text in given.items() if text is not None and not same_text(text, there[name])
        }
        if labels is not None:
            added = [name for name in labels if name not in found.labels]
            removed = [name for name in found.labels if is_own_label(name) and name not in labels]
            changed |= {"add_labels": ",".join(added)} if added else {}
            changed |= {"remove_labels": ",".join(removed)} if removed else {}
        return (await self._put("update", number, changed)).pull_request() if changed else found

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the one note of `marker`, among those of the credential's own user."""
        own = parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).username
        path, age, text = f"{self._one(number)}/notes", self._age(str(number)), marked(body, marker)
        for note in await self._notes("comment", number):
            if not note.system and note.author and note.author.username == own and is_marked(note.body or "", marker):
                if not same_text(note.body or "", text):
                    await self._client.request("comment", "PUT", f"{path}/{note.id}", body={"body": text}, age=age)
                return
        await self._client.request("comment", "POST", path, body={"body": text}, age=age)

    async def merge(
        self,
        number: int,
        *,
        by: str,
        method: MergeMethod | None = None,
        expected_head: str | None = None,
        message: CommitMessage | None = None,
    ) -> PullRequest:
        """Merge, unless it is merged already; the host deletes the branch. `by` is the token's user in any case."""
        found = await self._merges.merge(number, method=method, expected_head=expected_head, message=message)
        return found.pull_request()

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Have the host rebase the branch."""
        await self._merges.bring_up_to_date(number, expected_head=expected_head)

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already."""
        found = (await self._get("close", number)).pull_request()
        if found.state == "open":
            if comment:
                await self.comment(number, comment, marker="closed")
            await self._put("close", number, {"state_event": "close"})
            found = (await self._get("close", number)).pull_request()
        if found.state == "merged":
            raise PullRequestEnded(f"merge request {number} is merged", remedy="Undo it with a rollback")
        if found.state == "open":
            raise UnknownAnswer(f"{self._client.host.name} answered success to close, and did not close")
        return found

    async def approvals(self, number: int) -> Sequence[Approval]:
        """Return the approvals that count, one per person, by time."""
        age = self._age(str(number))
        answer = await self._client.request("approvals", "GET", f"{self._one(number)}/approvals", age=age)
        approvals = parsed(ApiApprovals, answer.value)
        if all(one.approved_at for one in approvals.approved_by):
            return approvals_of(approvals, [], otherwise=self._client.clock.now())
        found = await self._get("approvals", number)
        notes = await self._notes("approvals", number)
        return approvals_of(approvals, notes, otherwise=found.updated_at or found.created_at)

    async def closed_by(self, number: int) -> str | None:
        """Return who closed a merge request last."""
        user = (await self._get("get", number)).closed_by
        return (user.username or None) if user else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each name of a commit."""
        return await self._commits.statuses(commit)

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless its pipeline has it already; a longer description is cut."""
        return await self._commits.set_status(commit, status, Priority.OPEN if urgent else Priority.POLL)

    async def access(self, needs: Collection[Need] = ()) -> Access:
        """Return what the credential may do with the project."""
        return await self._access.access(needs)

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return what the credential may do with a branch."""
        return await self._access.branch_access(branch)

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Call back never: the host tells by webhooks, and its list is polled."""
        return NoSubscription()

    async def _notes(self, operation: str, number: int) -> Sequence[ApiNote]:
        query = {"sort": "asc", "order_by": "created_at", "per_page": _PAGE}
        pages = self._client.pages(operation, f"{self._one(number)}/notes", query=query, age=self._age(str(number)))
        return [parsed(ApiNote, item) async for item in pages]

    async def _get(self, operation: str, number: int) -> ApiMergeRequest:
        answer = await self._client.request(operation, "GET", self._one(number), age=self._age(str(number)))
        return parsed(ApiMergeRequest, answer.value)

    async def _put(self, operation: str, number: int, changed: Mapping[str, Any]) -> ApiMergeRequest:
        answer = await self._client.request(
            operation, "PUT", self._one(number), body=changed, age=self._age(str(number))
        )
        return parsed(ApiMergeRequest, answer.value)

    def _one(self, number: int) -> str:
        return f"{self._path}/merge_requests/{number}"

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def connect(target: Target) -> PullRequests:
    """Return the merge requests of a project."""
    address = RepositoryAddress.of(target.url)
    if len(address.segments) < 2:
        raise UnsupportedProvider(
            f"{target.url} names no project", remedy="Write git.url as https://host/group/project"
        )
    sessions, authenticator = target.host_access()
    host = Host(base=f"{address.origin}/api/v4", rate=_RATE, table=ANSWERS, permissions=PERMISSIONS)
    client = HostClient(
        host,
        sessions=sessions,
        authenticator=authenticator,
        authority=target.authority,
        namespace=target.namespace,
        on_request=target.on_request,
    )
    return GitLabMergeRequests(client, project="/".join(address.segments))


def authenticate(values: Mapping[str, str], target: Target) -> Authenticator | None:
    """Return the authenticator of a Secret with `token`; a `password` is taken for one, as Git takes it."""
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
    ),
    connect=connect,
    authenticate=authenticate,
    parse_webhook=parse_webhook,
)
