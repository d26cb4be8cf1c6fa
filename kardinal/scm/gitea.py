"""Provider `gitea`: pull requests through the REST API, version 1, of Gitea.

    https://host/owner/repository      ->  https://host/api/v1
    https://host/git/owner/repository  ->  https://host/git/api/v1

Forgejo has the same API (`kardinal.scm.forgejo`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
)
from kardinal.scm.gitea_access import GiteaAccess
from kardinal.scm.gitea_answers import ANSWERS, PERMISSIONS
from kardinal.scm.gitea_assigning import GiteaAssigning
from kardinal.scm.gitea_labels import GiteaLabels
from kardinal.scm.gitea_merges import GiteaMerges
from kardinal.scm.gitea_values import (
    ApiCombinedStatus,
    ApiComments,
    ApiFile,
    ApiPullRequest,
    ApiReview,
    ApiStatus,
    ApiTimeline,
    ApiUser,
    approvals_of,
)
from kardinal.scm.hosted import Comment, HostedPullRequests
from kardinal.scm.http import (
    Host,
    HostAuthenticator,
    HostClient,
    Outcome,
    Priority,
    Rate,
    static_authenticator,
)
from kardinal.scm.provider import Provider, RepositoryHost
from kardinal.scm.values import draft_title, parsed
from kardinal.scm.webhooks import Delivery, check_hmac, event_of, header_of, payload_of

__all__ = ["GITEA", "GiteaCalls", "authenticate", "connect"]

_RATE = Rate(per_second=10.0, burst=40)
_PAGE = "50"
_DRAFT = "WIP:"
_FILES = 1000
"""The most files of a pull request that are read."""
_LISTED: Mapping[PullRequestState | None, str] = {"open": "open", "merged": "closed", "closed": "closed", None: "all"}


class GiteaCalls:
    """The `HostCalls` of one repository."""

    noun = "pull request"

    def __init__(self, client: HostClient, *, owner: str, name: str) -> None:
        self._client = client
        self._path = f"/repos/{quoted(owner)}/{quoted(name)}"
        self._access = GiteaAccess(client, self._path)
        self._labels = GiteaLabels(client, self._path)
        self._assigning = GiteaAssigning(client, self._path, owner=owner, labels=self._labels)
        self.merges = GiteaMerges(client, self._path, self._access)

    @property
    def host(self) -> str:
        """Return the name of the host."""
        return self._client.host.name

    async def create(self, new: NewPullRequest) -> PullRequest | None:
        """Open a pull request."""
        labels = await self._labels.ids(new.labels)
        title = draft_title(_DRAFT, new)
        body = {"title": title, "body": new.body, "head": new.head, "base": new.base, "labels": labels}
        age = self._age(f"{new.head}\n{new.base}")
        answer = await self._client.request("open", "POST", f"{self._path}/pulls", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            return None
        if answer.status == 422:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        opened = parsed(ApiPullRequest, answer.value).pull_request()
        self._age(str(opened.number))
        return await self._first_of(opened)

    async def adopted(self, found: PullRequest, new: NewPullRequest) -> PullRequest:
        """Return it as it is."""
        return found

    async def get(self, operation: str, number: int) -> ApiPullRequest:
        """Return one pull request."""
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request(operation, "GET", path, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value)

    async def listed(self, state: PullRequestState | None) -> Sequence[PullRequest]:
        """Return all pull requests, or those that are open or not."""
        query = {"state": _LISTED[state], "limit": _PAGE}
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL)
        return [parsed(ApiPullRequest, item).pull_request() async for item in pages]

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, including those from forks; the request is the same as that of `listed`."""
        query = {"state": "open", "limit": _PAGE}
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL)
        return [parsed(ApiPullRequest, item).open_head() async for item in pages]

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return an empty list, because the host has no merge queues."""
        return ()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the files of the pull request; None unless the host says of each that it belongs to this commit."""
        path = f"{self._path}/pulls/{number}/files"
        found = list[ApiFile]()
        query = {"limit": _PAGE}
        age = self._age(str(number))
        async for item in self._client.pages("files", path, query=query, priority=Priority.POLL, age=age):
            found.append(parsed(ApiFile, item))
            if len(found) > _FILES:
                return None
        if not found or not all(file.is_of(commit) for file in found):
            return None
        return [name for file in found for name in (file.filename, file.previous_filename) if name]

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`.

        The host finds one of them directly, but not always the newest, so the newer pull requests are then searched.
        """
        path = f"{self._path}/pulls/{quoted(base)}/{quoted(head)}"
        answer = await self._client.request("find", "GET", path)
        if answer.status == 404:
            return None
        one = parsed(ApiPullRequest, answer.value)
        if one.state == "open" and not one.merged:
            return one.pull_request()
        pages = self._client.pages("find", f"{self._path}/pulls", query={"state": "all", "limit": _PAGE})
        async for item in pages:
            newer = parsed(ApiPullRequest, item)
            if newer.number <= one.number:
                break
            found = newer.pull_request()
            if newer.of_this_repository and (found.head, found.base) == (head, base):
                return found
        return one.pull_request()

    async def change(
        self, found: ApiPullRequest, *, texts: Mapping[str, str], add: Sequence[str], remove: Sequence[str]
    ) -> PullRequest:
        """Change texts, and labels by replacing their list."""
        number = found.number
        if texts:
            path = f"{self._path}/pulls/{number}"
            answer = await self._client.request("update", "PATCH", path, body=texts, age=self._age(str(number)))
            found = parsed(ApiPullRequest, answer.value)
        if add or remove:
            await self._labels.change(number, found.labels or [], add=add, remove=remove)
            found = await self.get("update", number)
        return found.pull_request()

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add people and labels."""
        return await self._assigning.assign(number, wanted)

    async def own_comment(self, number: int, *, marker: str) -> Comment | None:
        """Return the comment with `marker` of the credential's own user; None if there is none."""
        own = await self._login()
        path = f"{self._path}/issues/{number}/comments"
        answer = await self._client.request("comment", "GET", path, age=self._age(str(number)))
        for comment in parsed(ApiComments, answer.value).root:
            if comment.user and comment.user.login == own and is_marked(comment.body, marker):
                return Comment(comment.id, comment.body)
        return None

    async def add_comment(self, number: int, text: str) -> None:
        """Write a comment."""
        path = f"{self._path}/issues/{number}/comments"
        await self._client.request("comment", "POST", path, body={"body": text}, age=self._age(str(number)))

    async def edit_comment(self, number: int, comment: Comment, text: str) -> None:
        """Change the text of a comment."""
        path = f"{self._path}/issues/comments/{comment.id}"
        await self._client.request("comment", "PATCH", path, body={"body": text}, age=self._age(str(number)))

    async def mark_closed(self, number: int) -> None:
        """Close an open pull request."""
        path = f"{self._path}/pulls/{number}"
        await self._client.request("close", "PATCH", path, body={"state": "closed"}, age=self._age(str(number)))

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return the approvals that count, one per person, by time."""
        path = f"{self._path}/pulls/{number}/reviews"
        pages = self._client.pages("approvals", path, query={"limit": _PAGE}, age=self._age(str(number)))
        return approvals_of([parsed(ApiReview, item) async for item in pages])

    async def closed_by(self, number: int) -> str | None:
        """Return who last closed a pull request, from the events in its timeline since it was closed."""
        closed = (await self.get("get", number)).closed_at
        if closed is None:
            return None
        query = {"since": closed.isoformat(), "limit": _PAGE}
        path = f"{self._path}/issues/{number}/timeline"
        age = self._age(str(number))
        answer = await self._client.request("closed-by", "GET", path, query=query, age=age)
        closings = [event.user for event in parsed(ApiTimeline, answer.value).root or () if event.type == "close"]
        return (closings[-1].login or None) if closings and closings[-1] else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        return await self._statuses(commit, Priority.OPEN)

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool:
        """Write a status unless the commit has it already."""
        if (await self._statuses(commit, priority)).get(status.context) == status:
            return False
        body = {
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.url,
        }
        path = f"{self._path}/statuses/{quoted(commit)}"
        age = self._age(commit)
        answer = await self._client.request("set-status", "POST", path, body=body, priority=priority, age=age)
        parsed(ApiStatus, answer.value)
        return True

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return the rights of the credential on the repository."""
        return await self._access.access(needs)

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the credential on a branch."""
        return await self._access.branch_access(branch)

    async def _statuses(self, commit: str, priority: Priority) -> Mapping[str, CommitStatus]:
        found: dict[str, CommitStatus] = {}
        path = f"{self._path}/commits/{quoted(commit)}/status"
        age = self._age(commit)
        page = 1
        while True:
            query = {"limit": _PAGE, "page": str(page)}
            answer = await self._client.request("statuses", "GET", path, query=query, priority=priority, age=age)
            statuses = parsed(ApiCombinedStatus, answer.value).statuses or []
            found.update({one.context: one.commit_status() for one in statuses})
            if 'rel="next"' not in answer.headers.get("link", ""):
                return found
            page += 1

    async def _first_of(self, opened: PullRequest) -> PullRequest:
        """Return the first open pull request of the same branches, and close `opened` if that is another one.

        The host does not prevent two programs from opening two at the same moment.
        """
        query = {"state": "open", "sort": "oldest", "base_branch": opened.base, "limit": _PAGE}
        async for item in self._client.pages("open", f"{self._path}/pulls", query=query):
            one = parsed(ApiPullRequest, item)
            first = one.pull_request()
            if first.number == opened.number:
                break
            if one.of_this_repository and (first.head, first.base) == (opened.head, opened.base):
                why = f"Pull request #{first.number} was opened first."
                await HostedPullRequests(self, self.merges).close(opened.number, by="", comment=why)
                return first
        else:
            # The host reported success but has no such pull request: opening is retried and then finds it if it was
            # created.
            await self.get("get", opened.number)
        return opened

    async def _login(self) -> str:
        return parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).login

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def connect(target: RepositoryHost) -> PullRequests:
    """Return the pull requests of a repository at a host with the API of Gitea."""
    address = RepositoryAddress.of(target.url)
    below, owner, name = address.owner_and_name()
    host = Host(base=f"{address.origin}{below}/api/v1", rate=_RATE, table=ANSWERS, permissions=PERMISSIONS)
    calls = GiteaCalls(target.client(host), owner=owner, name=name)
    return HostedPullRequests(calls, calls.merges)


def authenticate(values: Mapping[str, str], target: RepositoryHost) -> HostAuthenticator | None:
    """Return the authenticator of a Secret with `token`, or `username` and `password`."""
    return static_authenticator(values, header="Authorization", scheme="token")


def _parse_webhook(headers: Mapping[str, str], body: bytes, secret: bytes) -> Delivery:
    check_hmac(header_of(headers, "X-Gitea-Signature"), body, secret)
    return event_of(payload_of(body), header_of(headers, "X-Gitea-Event-Type") or header_of(headers, "X-Gitea-Event"))


CAPABILITIES = Capabilities(
    pull_requests=True,
    statuses=True,
    merge_methods=frozenset({"merge", "squash", "rebase"}),
    webhooks=True,
    pull_request_fields=frozenset({"reviewers", "teamReviewers", "assignees", "labels", "draft"}),
)

GITEA = Provider(
    name="gitea",
    capabilities=CAPABILITIES,
    connect=connect,
    authenticate=authenticate,
    parse_webhook=_parse_webhook,
)
