"""Provider `github`: pull requests through the REST API of github.com and of GitHub Enterprise.

    https://github.com/owner/repository    ->  https://api.github.com
    https://name.ghe.com/owner/repository  ->  https://api.name.ghe.com
    https://host/owner/repository          ->  https://host/api/v3

A Secret contains a token (`token`, or `username` and `password`) or a GitHub App (`appId`, `privateKey`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
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
)
from kardinal.scm.github_access import GitHubAccess
from kardinal.scm.github_answers import ANSWERS, PERMISSIONS
from kardinal.scm.github_app import AppAuthenticator, AppKey
from kardinal.scm.github_assigning import GitHubAssigning
from kardinal.scm.github_commits import GitHubCommits
from kardinal.scm.github_merges import GitHubMerges
from kardinal.scm.github_queue import MergeQueue
from kardinal.scm.github_values import (
    ApiComment,
    ApiIssue,
    ApiPermission,
    ApiPullRequest,
    ApiReview,
    ApiUser,
    latest_approvals,
)
from kardinal.scm.hosted import Comment, HostedPullRequests
from kardinal.scm.http import Host, HostAuthenticator, HostClient, Outcome, Priority, Rate, static_authenticator
from kardinal.scm.provider import Provider, RepositoryHost
from kardinal.scm.values import parsed
from kardinal.scm.webhooks import Delivery, check_hmac, event_of, header_of, payload_of

__all__ = ["GITHUB", "GitHubCalls", "api_of"]

# 900 points per minute, where a write costs five:
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_RATE = Rate(per_second=5.0, burst=30)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_PAGE = "100"
_SIGNATURE = "sha256="
_LISTED: Mapping[PullRequestState | None, str] = {"open": "open", "merged": "closed", "closed": "closed", None: "all"}


class GitHubCalls:
    """The `HostCalls` of one repository."""

    noun = "pull request"

    def __init__(
        self, client: HostClient, graphql: HostClient, *, owner: str, name: str, app: AppAuthenticator | None
    ) -> None:
        self._client = client
        self._owner = owner
        self._path = f"/repos/{quoted(owner)}/{quoted(name)}"
        self._commits = GitHubCommits(client, self._path)
        self.merges = GitHubMerges(client, self._path, MergeQueue(graphql, owner=owner, name=name))
        self._assigning = GitHubAssigning(client, self._path, owner=owner)
        self._app = app
        self._access = GitHubAccess(client, graphql, owner=owner, name=name, path=self._path, app=app)

    @property
    def host(self) -> str:
        """Return the name of the host."""
        return self._client.host.name

    async def create(self, new: NewPullRequest) -> PullRequest | None:
        """Open a pull request."""
        body: dict[str, Any] = {"title": new.title, "body": new.body, "head": new.head, "base": new.base}
        body |= {"draft": True} if new.draft else {}
        age = self._age(f"{new.head}\n{new.base}")
        answer = await self._client.request("open", "POST", f"{self._path}/pulls", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            return None
        if answer.status == 422:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        opened = parsed(ApiPullRequest, answer.value).pull_request()
        self._age(str(opened.number))
        return await self._labelled(opened, new.labels)

    async def adopted(self, found: PullRequest, new: NewPullRequest) -> PullRequest:
        """Add the labels."""
        return await self._labelled(found, new.labels)

    async def get(self, operation: str, number: int) -> ApiPullRequest:
        """Return one pull request."""
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request(operation, "GET", path, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value)

    async def listed(self, state: PullRequestState | None) -> Sequence[PullRequest]:
        """Return all pull requests, or those that are open or not, without those from forks."""
        query = {"state": _LISTED[state], "per_page": _PAGE}
        age = self._repository_age()
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL, age=age)
        found = [parsed(ApiPullRequest, item) async for item in pages]
        return [one.pull_request() for one in found if one.of_this_repository]

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, including those from forks; the request is the same as that of `listed`."""
        query = {"state": "open", "per_page": _PAGE}
        age = self._repository_age()
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL, age=age)
        return [parsed(ApiPullRequest, item).open_head() async for item in pages]

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits that merge queues are testing."""
        return await self._commits.merge_groups()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the paths that a commit proposes to change, even if the pull request has moved on meanwhile."""
        return await self._commits.changed_files(commit, base=base)

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`."""
        query = {
            "head": f"{self._owner}:{head}",
            "base": base,
            "state": "all",
            "sort": "created",
            "direction": "desc",
            "per_page": _PAGE,
        }
        async for item in self._client.pages("find", f"{self._path}/pulls", query=query, age=self._repository_age()):
            found = parsed(ApiPullRequest, item)
            if found.of_this_repository and (found.head.ref, found.base.ref) == (head, base):
                return found.pull_request()
        return None

    async def change(
        self, found: ApiPullRequest, *, texts: Mapping[str, str], add: Sequence[str], remove: Sequence[str]
    ) -> PullRequest:
        """Change the texts in one request, and each label in a request of its own."""
        number = found.number
        if texts:
            found = await self._patch("update", number, texts)
        for name in remove:
            await self._client.request("unlabel", "DELETE", f"{self._path}/issues/{number}/labels/{quoted(name)}")
        if remove:
            found = await self.get("update", number)
        return await self._labelled(found.pull_request(), add)

    async def assign(self, number: int, wanted: Assignments) -> Sequence[Unassigned]:
        """Add people and labels."""
        return await self._assigning.assign(number, wanted)

    async def own_comment(self, number: int, *, marker: str) -> Comment | None:
        """Return the comment with `marker` of the credential's own user; None if there is none."""
        login = "" if self._app else await self._login()
        path = f"{self._path}/issues/{number}/comments"
        query = {"per_page": _PAGE}
        async for item in self._client.pages("comment", path, query=query, age=self._age(str(number))):
            comment = parsed(ApiComment, item)
            own = comment.is_of(login=login, app=self._app.app if self._app else None)
            if own and is_marked(comment.body or "", marker):
                return Comment(comment.id, comment.body or "")
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
        await self._patch("close", number, {"state": "closed"})

    async def approvals(self, number: int) -> Sequence[ReviewApproval]:
        """Return the approvals that count, one per person, by time: those of people with write access."""
        path = f"{self._path}/pulls/{number}/reviews"
        pages = self._client.pages("approvals", path, query={"per_page": _PAGE}, age=self._age(str(number)))
        latest = latest_approvals([parsed(ApiReview, item) async for item in pages])
        return [approval for approval in latest if await self._writes(approval.by)]

    async def closed_by(self, number: int) -> str | None:
        """Return who last closed a pull request, from the issue that GitHub keeps for it."""
        path = f"{self._path}/issues/{number}"
        answer = await self._client.request("closed-by", "GET", path, age=self._age(str(number)))
        user = parsed(ApiIssue, answer.value).closed_by
        return (user.login or None) if user else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        return await self._commits.statuses(commit)

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool:
        """Write a status unless the commit has it already; a long description is cut."""
        return await self._commits.set_status(commit, status, priority)

    async def access(self, needs: Collection[Need] = ()) -> HostAccess:
        """Return the rights of the credential on the repository."""
        return await self._access.access(needs, age=self._repository_age())

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return the rights of the credential on a branch."""
        return await self._access.branch_access(branch)

    async def _patch(self, operation: str, number: int, changed: Mapping[str, Any]) -> ApiPullRequest:
        path = f"{self._path}/pulls/{number}"
        age = self._age(str(number))
        answer = await self._client.request(operation, "PATCH", path, body=changed, age=age)
        return parsed(ApiPullRequest, answer.value)

    async def _labelled(self, found: PullRequest, labels: Sequence[str]) -> PullRequest:
        """Add labels; the host creates labels that the repository does not have."""
        missing = [name for name in labels if name not in found.labels]
        if not missing:
            return found
        path = f"{self._path}/issues/{found.number}/labels"
        age = self._age(str(found.number))
        await self._client.request("labels", "POST", path, body={"labels": missing}, age=age)
        return (await self.get("get", found.number)).pull_request()

    async def _writes(self, login: str) -> bool:
        path = f"{self._path}/collaborators/{quoted(login)}/permission"
        answer = await self._client.request("reviewer", "GET", path)
        return answer.status == 200 and parsed(ApiPermission, answer.value).writes

    async def _login(self) -> str:
        return parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).login

    def _repository_age(self) -> float | None:
        """Return the age of the repository for a GitHub App, whose newly minted token may be answered with 404."""
        return self._age("repository") if self._app else None

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def api_of(origin: str) -> tuple[str, str]:
    """Return the base URLs of the REST and the GraphQL API of a host."""
    scheme, _, host = origin.partition("://")
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"{scheme}://api.{host}", f"{scheme}://api.{host}"
    return f"{origin}/api/v3", f"{origin}/api"


def connect(target: RepositoryHost) -> PullRequests:
    """Return the pull requests of a repository at GitHub."""
    rest, graphql, owner, name = _hosts(target)
    app = target.authenticator if isinstance(target.authenticator, AppAuthenticator) else None
    calls = GitHubCalls(target.client(rest), target.client(graphql), owner=owner, name=name, app=app)
    return HostedPullRequests(calls, calls.merges)


def authenticate(values: Mapping[str, str], target: RepositoryHost) -> HostAuthenticator | None:
    """Return the authenticator of a Secret with a GitHub App, a token, or a user name and a password."""
    key = AppKey.of(values)
    if key is None or target.sessions is None:
        return static_authenticator(values, header="Authorization", scheme="Bearer")
    rest, _, owner, name = _hosts(target)
    return AppAuthenticator(
        key,
        host=rest,
        owner=owner,
        name=name,
        sessions=target.sessions,
        authority=target.authority,
        namespace=target.namespace,
    )


def _hosts(target: RepositoryHost) -> tuple[Host, Host, str, str]:
    address = RepositoryAddress.of(target.url)
    _, owner, name = address.owner_and_name()
    rest, graphql = (
        Host(base=base, rate=_RATE, table=ANSWERS, permissions=PERMISSIONS, headers=_HEADERS, resource=resource)
        for base, resource in zip(api_of(address.origin), ("core", "graphql"), strict=True)
    )
    return rest, graphql, owner, name


def _api_host(url: str) -> str:
    rest, _ = api_of(RepositoryAddress.of(url).origin)
    host = rest.partition("://")[2].partition("/")[0]
    return host.lower().removesuffix(":443")


def _parse_webhook(headers: Mapping[str, str], body: bytes, secret: bytes) -> Delivery:
    signature = header_of(headers, "X-Hub-Signature-256")
    # Without the name of the algorithm, the header has another format.
    check_hmac(signature.removeprefix(_SIGNATURE) if signature.startswith(_SIGNATURE) else "", body, secret)
    payload = payload_of(body)
    delivery = event_of(payload, header_of(headers, "X-GitHub-Event"))
    group = payload.get("merge_group")
    if not isinstance(group, dict):
        return delivery
    # A merge queue asks for statuses of a commit that belongs to no pull request.
    commit = str(group.get("head_sha", ""))[:64]
    base = str(group.get("base_ref", ""))[:255]
    return replace(delivery, commit=commit, branch=base.removeprefix("refs/heads/"), proposed=True)


GITHUB = Provider(
    name="github",
    capabilities=Capabilities(
        pull_requests=True,
        statuses=True,
        compares_branches=True,
        merge_methods=frozenset({"merge", "squash", "rebase"}),
        webhooks=True,
        pull_request_fields=frozenset({"reviewers", "teamReviewers", "assignees", "labels", "draft"}),
    ),
    connect=connect,
    authenticate=authenticate,
    api_host=_api_host,
    parse_webhook=_parse_webhook,
)
