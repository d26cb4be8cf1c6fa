"""Provider `github`: pull requests by the REST API of github.com and of GitHub Enterprise.

    https://github.com/owner/repository    ->  https://api.github.com
    https://name.ghe.com/owner/repository  ->  https://api.name.ghe.com
    https://host/owner/repository          ->  https://host/api/v3

A Secret holds a token (`token`, or `username` and `password`) or a GitHub App (`appId`, `privateKey`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
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
)
from kardinal.scm.github_access import GitHubAccess
from kardinal.scm.github_answers import ANSWERS, PERMISSIONS
from kardinal.scm.github_app import AppAuthenticator, AppKey
from kardinal.scm.github_commits import GitHubCommits
from kardinal.scm.github_merges import GitHubMerges
from kardinal.scm.github_queue import MergeQueue
from kardinal.scm.github_values import (
    ApiComment,
    ApiIssue,
    ApiPermission,
    ApiPullRequest,
    ApiRepository,
    ApiReview,
    ApiUser,
    latest_approvals,
)
from kardinal.scm.http import Authenticator, Host, HostClient, Outcome, Priority, Rate, static_authenticator
from kardinal.scm.provider import Provider, Target
from kardinal.scm.values import parsed, same_text
from kardinal.scm.webhooks import Delivery, check_hmac, event_of, header_of, payload_of
from kardinal.steps.capabilities import Capabilities
from kardinal.steps.commit_message import CommitMessage

__all__ = ["GITHUB", "GitHubPullRequests", "api_of"]

# 900 points a minute, of which a change costs five:
# https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api
_RATE = Rate(per_second=5.0, burst=30)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_PAGE = "100"
_SIGNATURE = "sha256="
_LISTED: Mapping[PullRequestState | None, str] = {"open": "open", "merged": "closed", "closed": "closed", None: "all"}


class GitHubPullRequests:
    """The pull requests of one repository."""

    def __init__(
        self, client: HostClient, graphql: HostClient, *, owner: str, name: str, app: AppAuthenticator | None
    ) -> None:
        self._client = client
        self._owner = owner
        self._path = f"/repos/{quoted(owner)}/{quoted(name)}"
        self._commits = GitHubCommits(client, self._path)
        self._merges = GitHubMerges(client, self._path, MergeQueue(graphql, owner=owner, name=name))
        self._app = app
        self._access = GitHubAccess(client, graphql, owner=owner, name=name, path=self._path, app=app)

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head."""
        body = {"title": new.title, "body": new.body, "head": new.head, "base": new.base}
        age = self._age(f"{new.head}\n{new.base}")
        answer = await self._client.request("open", "POST", f"{self._path}/pulls", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            found = await self.find(new.head, base=new.base)
            if found is None or found.state != "open":
                raise UnknownAnswer(f"{self._client.host.name} has a pull request of {new.head}, and does not show it")
            return await self._labelled(found, new.labels)
        if answer.status == 422:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        opened = parsed(ApiPullRequest, answer.value).pull_request()
        self._age(str(opened.number))
        return await self._labelled(opened, new.labels)

    async def get(self, number: int) -> PullRequest:
        """Return one pull request."""
        return await self._get("get", number)

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """All pull requests, or those in one state, by number; those from forks are left out."""
        query = {"state": _LISTED[state], "per_page": _PAGE}
        age = self._repository_age()
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL, age=age)
        found = [parsed(ApiPullRequest, item) async for item in pages]
        shown = [one.pull_request() for one in found if one.of_this_repository]
        return sorted((one for one in shown if state in (None, one.state)), key=lambda one: one.number)

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, those from forks too; the same list as `list` asks for."""
        query = {"state": "open", "per_page": _PAGE}
        age = self._repository_age()
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL, age=age)
        found = [parsed(ApiPullRequest, item).open_head() async for item in pages]
        return sorted(found, key=lambda one: one.number)

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits that merge queues test now."""
        return await self._commits.merge_groups()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the paths that a commit proposes to change, whatever the pull request shows meanwhile."""
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

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change what is given and differs."""
        found = await self._get("update", number)
        there = {"title": found.title, "body": found.body}
        given = {"title": title, "body": body}
        changed = {name: text for name, text in given.items() if text is not None and not same_text(text, there[name])}
        if changed:
            found = await self._patch("update", number, changed)
        if labels is None:
            return found
        surplus = [name for name in found.labels if is_own_label(name) and name not in labels]
        for name in surplus:
            await self._client.request("unlabel", "DELETE", f"{self._path}/issues/{number}/labels/{quoted(name)}")
        return await self._labelled(await self._get("update", number) if surplus else found, labels)

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the one comment of `marker`, among those of the credential's own user."""
        login = "" if self._app else await self._login()
        path, age, text = f"{self._path}/issues/{number}/comments", self._age(str(number)), marked(body, marker)
        async for item in self._client.pages("comment", path, query={"per_page": _PAGE}, age=age):
            comment = parsed(ApiComment, item)
            own = comment.is_of(login=login, app=self._app.app if self._app else None)
            if own and is_marked(comment.body or "", marker):
                if not same_text(comment.body or "", text):
                    edited = f"{self._path}/issues/comments/{comment.id}"
                    await self._client.request("comment", "PATCH", edited, body={"body": text}, age=age)
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
        """Merge, or enter the merge queue of the base; `by` is the token's user in any case."""
        return await self._merges.merge(number, method=method, expected_head=expected_head, message=message)

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Have the host merge the base into the head, which it does in the background."""
        await self._merges.bring_up_to_date(number, expected_head=expected_head)

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already."""
        found = await self._get("close", number)
        if found.state == "open":
            if comment:
                await self.comment(number, comment, marker="closed")
            await self._patch("close", number, {"state": "closed"})
            found = await self._get("close", number)
        if found.state == "merged":
            raise PullRequestEnded(f"pull request {number} is merged", remedy="Undo it with a rollback")
        if found.state == "open":
            raise UnknownAnswer(f"{self._client.host.name} answered success to close, and did not close")
        return found

    async def approvals(self, number: int) -> Sequence[Approval]:
        """Return the approvals that count, one per person, by time: those of people who may write."""
        path = f"{self._path}/pulls/{number}/reviews"
        pages = self._client.pages("approvals", path, query={"per_page": _PAGE}, age=self._age(str(number)))
        latest = latest_approvals([parsed(ApiReview, item) async for item in pages])
        return [approval for approval in latest if await self._writes(approval.by)]

    async def closed_by(self, number: int) -> str | None:
        """Return who closed a pull request last, as GitHub says of its issue."""
        path = f"{self._path}/issues/{number}"
        answer = await self._client.request("closed-by", "GET", path, age=self._age(str(number)))
        user = parsed(ApiIssue, answer.value).closed_by
        return (user.login or None) if user else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        return await self._commits.statuses(commit)

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless the commit has it already; a longer description is cut."""
        return await self._commits.set_status(commit, status, Priority.OPEN if urgent else Priority.POLL)

    async def access(self, needs: Collection[Need] = ()) -> Access:
        """Return what the credential may do with the repository."""
        return await self._access.access(needs, age=self._repository_age())

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return what the credential may do with a branch."""
        return await self._access.branch_access(branch)

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Call back never: the host tells by webhooks, and its list is polled."""
        return NoSubscription()

    async def _get(self, operation: str, number: int, priority: Priority = Priority.OPEN) -> PullRequest:
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request(operation, "GET", path, priority=priority, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value).pull_request()

    async def _patch(self, operation: str, number: int, changed: Mapping[str, Any]) -> PullRequest:
        path, age = f"{self._path}/pulls/{number}", self._age(str(number))
        answer = await self._client.request(operation, "PATCH", path, body=changed, age=age)
        return parsed(ApiPullRequest, answer.value).pull_request()

    async def _labelled(self, found: PullRequest, labels: Sequence[str]) -> PullRequest:
        """Add labels; those that the repository does not have are made by the host."""
        missing = [name for name in labels if name not in found.labels]
        if not missing:
            return found
        path, age = f"{self._path}/issues/{found.number}/labels", self._age(str(found.number))
        await self._client.request("labels", "POST", path, body={"labels": missing}, age=age)
        return await self._get("get", found.number)

    async def _writes(self, login: str) -> bool:
        path = f"{self._path}/collaborators/{quoted(login)}/permission"
        answer = await self._client.request("reviewer", "GET", path)
        return answer.status == 200 and parsed(ApiPermission, answer.value).writes

    async def _repository(self) -> ApiRepository:
        answer = await self._client.request("access", "GET", self._path, age=self._repository_age())
        return parsed(ApiRepository, answer.value)

    async def _login(self) -> str:
        return parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).login

    def _repository_age(self) -> float | None:
        """Return the age of the repository where 404 may be said of a token that was minted a moment ago."""
        return self._age("repository") if self._app else None

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def api_of(origin: str) -> tuple[str, str]:
    """Return the base addresses of the REST and of the GraphQL API of a host."""
    scheme, _, host = origin.partition("://")
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"{scheme}://api.{host}", f"{scheme}://api.{host}"
    return f"{origin}/api/v3", f"{origin}/api"


def connect(target: Target) -> PullRequests:
    """Return the pull requests of a repository at GitHub."""
    rest, graphql, owner, name = _hosts(target)
    sessions, authenticator = target.host_access()

    def client(host: Host) -> HostClient:
        return HostClient(
            host,
            sessions=sessions,
            authenticator=authenticator,
            authority=target.authority,
            namespace=target.namespace,
            on_request=target.on_request,
        )

    app = authenticator if isinstance(authenticator, AppAuthenticator) else None
    return GitHubPullRequests(client(rest), client(graphql), owner=owner, name=name, app=app)


def authenticate(values: Mapping[str, str], target: Target) -> Authenticator | None:
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


def _hosts(target: Target) -> tuple[Host, Host, str, str]:
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
    # Without the algorithm's name it is another header's, or none.
    check_hmac(signature.removeprefix(_SIGNATURE) if signature.startswith(_SIGNATURE) else "", body, secret)
    payload = payload_of(body)
    delivery = event_of(payload, header_of(headers, "X-GitHub-Event"))
    group = payload.get("merge_group")
    if not isinstance(group, dict):
        return delivery
    # A merge queue asks for statuses of a commit that no pull request has.
    commit, base = str(group.get("head_sha", ""))[:64], str(group.get("base_ref", ""))[:255]
    return replace(delivery, commit=commit, branch=base.removeprefix("refs/heads/"), proposed=True)


GITHUB = Provider(
    name="github",
    capabilities=Capabilities(
        pull_requests=True,
        statuses=True,
        compares_branches=True,
        merge_methods=frozenset({"merge", "squash", "rebase"}),
        webhooks=True,
    ),
    connect=connect,
    authenticate=authenticate,
    api_host=_api_host,
    parse_webhook=_parse_webhook,
)
