"""Provider `gitea`: pull requests by the REST API, version 1, of Gitea.

    https://host/owner/repository      ->  https://host/api/v1
    https://host/git/owner/repository  ->  https://host/git/api/v1

Forgejo speaks the same API (`kardinal.scm.forgejo`).
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
    HeadMoved,
    NothingToMerge,
    PullRequestEnded,
    UnknownAnswer,
)
from kardinal.scm.gitea_access import GiteaAccess
from kardinal.scm.gitea_answers import ANSWERS, PERMISSIONS
from kardinal.scm.gitea_values import (
    ApiCombinedStatus,
    ApiComments,
    ApiFile,
    ApiLabel,
    ApiPullRequest,
    ApiReview,
    ApiStatus,
    ApiTimeline,
    ApiUser,
    approvals_of,
)
from kardinal.scm.http import (
    Authenticator,
    Host,
    HostClient,
    Outcome,
    Priority,
    Rate,
    static_authenticator,
)
from kardinal.scm.provider import Provider, Target
from kardinal.scm.values import parsed, same_text, squash_text
from kardinal.scm.webhooks import Delivery, check_hmac, event_of, header_of, payload_of
from kardinal.steps.capabilities import Capabilities
from kardinal.steps.commit_message import CommitMessage

__all__ = ["GITEA", "GiteaPullRequests", "authenticate", "connect"]

_RATE = Rate(per_second=10.0, burst=40)
_PAGE = "50"
_FILES = 1000
"""Files of a pull request that are read."""
_LABEL_COLOR = "#0e8a16"
_LISTED: Mapping[PullRequestState | None, str] = {"open": "open", "merged": "closed", "closed": "closed", None: "all"}


class GiteaPullRequests:
    """The pull requests of one repository."""

    def __init__(self, client: HostClient, *, owner: str, name: str) -> None:
        self._client = client
        self._path = f"/repos/{quoted(owner)}/{quoted(name)}"
        self._access = GiteaAccess(client, self._path)

    async def open(self, new: NewPullRequest) -> PullRequest:
        """Open a pull request, or adopt the open one with the same head."""
        labels = await self._label_ids(new.labels)
        body = {"title": new.title, "body": new.body, "head": new.head, "base": new.base, "labels": labels}
        age = self._age(f"{new.head}\n{new.base}")
        answer = await self._client.request("open", "POST", f"{self._path}/pulls", body=body, age=age)
        if answer.outcome is Outcome.ADOPT:
            found = await self.find(new.head, base=new.base)
            if found is None or found.state != "open":
                raise UnknownAnswer(f"{self._client.host.name} has a pull request of {new.head}, and does not show it")
            return found
        if answer.status == 422:
            raise NothingToMerge(f"branch {new.base} has every commit of {new.head}")
        opened = parsed(ApiPullRequest, answer.value).pull_request()
        self._age(str(opened.number))
        return await self._first_of(opened)

    async def get(self, number: int) -> PullRequest:
        """Return one pull request."""
        return (await self._get("get", number)).pull_request()

    async def list(self, state: PullRequestState | None = None) -> list[PullRequest]:
        """All pull requests, or those in one state, by number."""
        query = {"state": _LISTED[state], "limit": _PAGE}
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL)
        found = [parsed(ApiPullRequest, item).pull_request() async for item in pages]
        return sorted((one for one in found if state in (None, one.state)), key=lambda one: one.number)

    async def heads(self) -> Sequence[OpenHead]:
        """Return every open pull request, those from forks too; the same list as `list` asks for."""
        query = {"state": "open", "limit": _PAGE}
        pages = self._client.pages("list", f"{self._path}/pulls", query=query, priority=Priority.POLL)
        found = [parsed(ApiPullRequest, item).open_head() async for item in pages]
        return sorted((one for one in found if one.commit), key=lambda one: one.number)

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return none: the host has no merge queues."""
        return ()

    async def changed_files(self, commit: str, *, base: str, number: int) -> Sequence[str] | None:
        """Return the files of the pull request, if each is said to be of this commit; without one that is not said."""
        path, found = f"{self._path}/pulls/{number}/files", list[ApiFile]()
        query, age = {"limit": _PAGE}, self._age(str(number))
        async for item in self._client.pages("files", path, query=query, priority=Priority.POLL, age=age):
            found.append(parsed(ApiFile, item))
            if len(found) > _FILES:
                return None
        if not found or not all(file.is_of(commit) for file in found):
            return None
        return [name for file in found for name in (file.filename, file.previous_filename) if name]

    async def find(self, head: str, *, base: str) -> PullRequest | None:
        """Return the newest pull request from branch `head` of this repository to branch `base`.

        The host finds one of them at once, not always the newest; the newer ones are then looked through.
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

    async def update(
        self, number: int, *, title: str | None = None, body: str | None = None, labels: Sequence[str] | None = None
    ) -> PullRequest:
        """Change what is given and differs."""
        found = await self._get("update", number)
        given = {"title": title, "body": body}
        there = {"title": found.title, "body": found.body}
        changed = {name: text for name, text in given.items() if text is not None and not same_text(text, there[name])}
        if changed:
            path = f"{self._path}/pulls/{number}"
            answer = await self._client.request("update", "PATCH", path, body=changed, age=self._age(str(number)))
            found = parsed(ApiPullRequest, answer.value)
        if labels is not None and await self._set_labels(number, found, labels):
            found = await self._get("update", number)
        return found.pull_request()

    async def comment(self, number: int, body: str, *, marker: str) -> None:
        """Write the one comment of `marker`, among those of the credential's own user."""
        own = await self._login()
        path = f"{self._path}/issues/{number}/comments"
        age, text = self._age(str(number)), marked(body, marker)
        answer = await self._client.request("comment", "GET", path, age=age)
        for comment in parsed(ApiComments, answer.value).root:
            if comment.user and comment.user.login == own and is_marked(comment.body, marker):
                if not same_text(comment.body, text):
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
        """Merge, unless it is merged already; the host deletes the branch. `by` is the token's user in any case."""
        found = (await self._get("get", number, Priority.MERGE)).pull_request()
        if found.state == "open":
            if expected_head not in (None, found.head_commit):
                raise HeadMoved(f"branch {found.head} is at {found.head_commit}, and no longer at {expected_head}")
            way = method or await self._usual_method()
            body: dict[str, Any] = {"Do": way, "delete_branch_after_merge": True}
            if way == "squash" and message is not None:
                body["MergeTitleField"], body["MergeMessageField"] = squash_text(message, number)
            if expected_head is not None:
                body["head_commit_id"] = expected_head
            path = f"{self._path}/pulls/{number}/merge"
            answer = await self._client.request("merge", "POST", path, body=body, priority=Priority.MERGE)
            found = (await self._get("get", number, Priority.MERGE)).pull_request()
            if found.state == "open":
                if answer.status == 409:
                    raise HeadMoved(f"branch {found.head} moved to {found.head_commit} while it was to be merged")
                raise UnknownAnswer(f"{self._client.host.name} answered {answer.status} to merge, and did not merge")
        if found.state == "closed":
            raise PullRequestEnded(f"pull request {number} is closed", remedy="Promote again to open a new one")
        return found

    async def bring_up_to_date(self, number: int, *, expected_head: str | None = None) -> None:
        """Have the host merge the base into the head; it does not ask for the head that is expected."""
        path = f"{self._path}/pulls/{number}/update"
        await self._client.request(
            "update-branch", "POST", path, query={"style": "merge"}, priority=Priority.MERGE, age=self._age(str(number))
        )

    async def close(self, number: int, *, by: str, comment: str) -> PullRequest:
        """Close without merging, unless it is closed already."""
        found = (await self._get("close", number)).pull_request()
        if found.state == "open":
            if comment:
                await self.comment(number, comment, marker="closed")
            path = f"{self._path}/pulls/{number}"
            await self._client.request("close", "PATCH", path, body={"state": "closed"}, age=self._age(str(number)))
            found = (await self._get("close", number)).pull_request()
        if found.state == "merged":
            raise PullRequestEnded(f"pull request {number} is merged", remedy="Undo it with a rollback")
        if found.state == "open":
            raise UnknownAnswer(f"{self._client.host.name} answered success to close, and did not close")
        return found

    async def approvals(self, number: int) -> Sequence[Approval]:
        """Return the approvals that count, one per person, by time."""
        path = f"{self._path}/pulls/{number}/reviews"
        pages = self._client.pages("approvals", path, query={"limit": _PAGE}, age=self._age(str(number)))
        return approvals_of([parsed(ApiReview, item) async for item in pages])

    async def closed_by(self, number: int) -> str | None:
        """Return who closed a pull request last, by what its timeline has since it was closed."""
        closed = (await self._get("get", number)).closed_at
        if closed is None:
            return None
        query = {"since": closed.isoformat(), "limit": _PAGE}
        path, age = f"{self._path}/issues/{number}/timeline", self._age(str(number))
        answer = await self._client.request("closed-by", "GET", path, query=query, age=age)
        closings = [event.user for event in parsed(ApiTimeline, answer.value).root or () if event.type == "close"]
        return (closings[-1].login or None) if closings and closings[-1] else None

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        return await self._statuses(commit, Priority.OPEN)

    async def set_status(self, commit: str, status: CommitStatus, *, urgent: bool = True) -> bool:
        """Write a status unless the commit has it already."""
        priority = Priority.OPEN if urgent else Priority.POLL
        if (await self._statuses(commit, priority)).get(status.context) == status:
            return False
        body = {
            "context": status.context,
            "state": status.state,
            "description": status.description,
            "target_url": status.url,
        }
        path, age = f"{self._path}/statuses/{quoted(commit)}", self._age(commit)
        answer = await self._client.request("set-status", "POST", path, body=body, priority=priority, age=age)
        parsed(ApiStatus, answer.value)
        return True

    async def access(self, needs: Collection[Need] = ()) -> Access:
        """Return what the credential may do with the repository."""
        return await self._access.access(needs)

    async def branch_access(self, branch: str) -> BranchAccess:
        """Return what the credential may do with a branch."""
        return await self._access.branch_access(branch)

    def subscribe(self, callback: Callable[[], None]) -> Subscription:
        """Call back never: the host tells by webhooks, and its list is polled."""
        return NoSubscription()

    async def _statuses(self, commit: str, priority: Priority) -> Mapping[str, CommitStatus]:
        found: dict[str, CommitStatus] = {}
        path, age, page = f"{self._path}/commits/{quoted(commit)}/status", self._age(commit), 1
        while True:
            query = {"limit": _PAGE, "page": str(page)}
            answer = await self._client.request("statuses", "GET", path, query=query, priority=priority, age=age)
            statuses = parsed(ApiCombinedStatus, answer.value).statuses or []
            found.update({one.context: one.commit_status() for one in statuses})
            if 'rel="next"' not in answer.headers.get("link", ""):
                return found
            page += 1

    async def _first_of(self, opened: PullRequest) -> PullRequest:
        """Return the first open pull request of the same branches, and close `opened` when that is another one.

        The host does not keep two programs that ask in one instant from opening two.
        """
        query = {"state": "open", "sort": "oldest", "base_branch": opened.base, "limit": _PAGE}
        async for item in self._client.pages("open", f"{self._path}/pulls", query=query):
            one = parsed(ApiPullRequest, item)
            first = one.pull_request()
            if first.number == opened.number:
                break
            if one.of_this_repository and (first.head, first.base) == (opened.head, opened.base):
                await self.close(opened.number, by="", comment=f"Pull request #{first.number} was opened first.")
                return first
        else:
            # Answered with success and not made: it is opened again, which finds what was made by then.
            await self._get("get", opened.number)
        return opened

    async def _get(self, operation: str, number: int, priority: Priority = Priority.OPEN) -> ApiPullRequest:
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request(operation, "GET", path, priority=priority, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value)

    async def _usual_method(self) -> str:
        return (await self._access.repository()).default_merge_style or "merge"

    async def _login(self) -> str:
        return parsed(ApiUser, (await self._client.request("user", "GET", "/user")).value).login

    async def _label_ids(self, names: Sequence[str]) -> Sequence[int]:
        """Return the ids of labels; those that the repository does not have are made."""
        if not names:
            return []
        path = f"{self._path}/labels"
        pages = self._client.pages("labels", path, query={"limit": _PAGE})
        known = {label.name: label.id for label in [parsed(ApiLabel, item) async for item in pages]}
        for name in names:
            if name not in known:
                new = {"name": name, "color": _LABEL_COLOR, "description": "Made by kardinal"}
                made = await self._client.request("labels", "POST", path, body=new)
                known[name] = parsed(ApiLabel, made.value).id
        return [known[name] for name in names]

    async def _set_labels(self, number: int, found: ApiPullRequest, wanted: Sequence[str]) -> bool:
        """Put `wanted` on, take other labels of kardinal's off, leave those of people; return whether it changed."""
        there = found.labels or []
        kept = [label.id for label in there if not is_own_label(label.name) or label.name in wanted]
        missing = [name for name in wanted if name not in {label.name for label in there}]
        if not missing and len(kept) == len(there):
            return False
        ids = [*kept, *await self._label_ids(missing)]
        path = f"{self._path}/issues/{number}/labels"
        await self._client.request("labels", "PUT", path, body={"labels": ids}, age=self._age(str(number)))
        return True

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def connect(target: Target) -> PullRequests:
    """Return the pull requests of a repository at a host with the API of Gitea."""
    address = RepositoryAddress.of(target.url)
    below, owner, name = address.owner_and_name()
    sessions, authenticator = target.host_access()
    host = Host(base=f"{address.origin}{below}/api/v1", rate=_RATE, table=ANSWERS, permissions=PERMISSIONS)
    client = HostClient(
        host,
        sessions=sessions,
        authenticator=authenticator,
        authority=target.authority,
        namespace=target.namespace,
        on_request=target.on_request,
    )
    return GiteaPullRequests(client, owner=owner, name=name)


def authenticate(values: Mapping[str, str], target: Target) -> Authenticator | None:
    """Return the authenticator of a Secret with `token`, or `username` and `password`."""
    return static_authenticator(values, header="Authorization", scheme="token")


def _parse_webhook(headers: Mapping[str, str], body: bytes, secret: bytes) -> Delivery:
    check_hmac(header_of(headers, "X-Gitea-Signature"), body, secret)
    return event_of(payload_of(body), header_of(headers, "X-Gitea-Event-Type") or header_of(headers, "X-Gitea-Event"))


CAPABILITIES = Capabilities(
    pull_requests=True, statuses=True, merge_methods=frozenset({"merge", "squash", "rebase"}), webhooks=True
)

GITEA = Provider(
    name="gitea",
    capabilities=CAPABILITIES,
    connect=connect,
    authenticate=authenticate,
    parse_webhook=_parse_webhook,
)
