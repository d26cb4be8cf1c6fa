"""GitHub's merge queue, which is available only through GraphQL.

If a branch has a queue, a merge is requested by putting the pull request into the queue. GitHub tests it together with
those before it and merges it later, or takes it out again; until then the pull request is open, and its merge is
blocked. A token that may bypass the queue does not do so, because the rule of the branch applies to kardinal as well.

A pull request that was taken out again, by a person or because its checks failed, is not put back unchanged, because
that would repeat forever. It waits until its head is another commit, or until a person puts it back.
"""

from __future__ import annotations

from typing import Any

from pydantic import AwareDatetime, BaseModel

from kardinal.scm.base import PullRequest
from kardinal.scm.errors import AccessDenied, HeadMoved, MergeBlocked, UnknownAnswer
from kardinal.scm.http import HostClient, Priority
from kardinal.scm.values import parsed

__all__ = ["MergeQueue"]

_LOOK = """\
query($owner: String!, $name: String!, $branch: String!, $ref: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    mergeQueue(branch: $branch) { id }
    ref(qualifiedName: $ref) { refUpdateRule { requiresLinearHistory } }
    pullRequest(number: $number) {
      id
      mergeQueueEntry { state }
      commits(last: 1) { nodes { commit { committedDate } } }
      timelineItems(last: 1, itemTypes: [ADDED_TO_MERGE_QUEUE_EVENT, REMOVED_FROM_MERGE_QUEUE_EVENT]) {
        nodes { ... on RemovedFromMergeQueueEvent { createdAt reason actor { login } } }
      }
    }
  }
}"""

_ENQUEUE = """\
mutation($input: EnqueuePullRequestInput!) {
  enqueuePullRequest(input: $input) { mergeQueueEntry { state } }
}"""

_RETRY_AFTER = 30.0


class ApiQueue(BaseModel):
    id: str


class ApiEntry(BaseModel):
    state: str


class ApiDated(BaseModel):
    committedDate: AwareDatetime  # noqa: N815 - the host's spelling


class ApiCommit(BaseModel):
    commit: ApiDated


class ApiCommits(BaseModel):
    nodes: list[ApiCommit] = []


class ApiActor(BaseModel):
    login: str = ""


class ApiEvent(BaseModel):
    """The last event of a queue; an event other than a removal has no time."""

    createdAt: AwareDatetime | None = None  # noqa: N815
    reason: str | None = None
    actor: ApiActor | None = None


class ApiEvents(BaseModel):
    nodes: list[ApiEvent] = []


class ApiQueuedPullRequest(BaseModel):
    id: str
    mergeQueueEntry: ApiEntry | None = None  # noqa: N815
    commits: ApiCommits = ApiCommits()
    timelineItems: ApiEvents = ApiEvents()  # noqa: N815

    def removal(self) -> ApiEvent | None:
        """Return the event by which the present head was taken out of the queue; None if there is no such event."""
        last = self.timelineItems.nodes[-1] if self.timelineItems.nodes else ApiEvent()
        heads = [one.commit.committedDate for one in self.commits.nodes]
        if last.createdAt is None or any(head > last.createdAt for head in heads):
            return None
        return last


class ApiUpdateRule(BaseModel):
    requiresLinearHistory: bool = False  # noqa: N815


class ApiRef(BaseModel):
    refUpdateRule: ApiUpdateRule | None = None  # noqa: N815


class ApiQueuedRepository(BaseModel):
    mergeQueue: ApiQueue | None = None  # noqa: N815
    ref: ApiRef | None = None
    pullRequest: ApiQueuedPullRequest  # noqa: N815


class ApiLook(BaseModel):
    repository: ApiQueuedRepository


class MergeQueue:
    """The merge queues of one repository."""

    def __init__(self, client: HostClient, *, owner: str, name: str) -> None:
        self._client = client
        self._owner = owner
        self._name = name

    async def enter(self, pull_request: PullRequest, *, expected_head: str | None) -> bool:
        """Put the pull request into the queue of its base, and raise `MergeBlocked`.

        If the base has no queue, return whether its protection requires a linear history, which is part of the same
        answer.
        """
        number = pull_request.number
        base = pull_request.base
        variables = {"owner": self._owner, "name": self._name, "branch": base, "number": number}
        data = await self._ask(_LOOK, {**variables, "ref": f"refs/heads/{base}"}, queues_unknown=True)
        if data is None:
            return False
        found = parsed(ApiLook, data).repository
        if found.mergeQueue is None:
            rule = found.ref.refUpdateRule if found.ref is not None else None
            return rule is not None and rule.requiresLinearHistory
        entry = found.pullRequest.mergeQueueEntry
        if entry is None:
            self._check_removal(found.pullRequest, number, base)
            head = expected_head or pull_request.head_commit
            wanted = {"pullRequestId": found.pullRequest.id, "expectedHeadOid": head}
            await self._ask(_ENQUEUE, {"input": wanted})
        state = self._client.quoted(entry.state if entry is not None else None, before=", as ")
        blocked = MergeBlocked(f"pull request {number} is in the merge queue of {base}{state}")
        blocked.retry_after = _RETRY_AFTER
        raise blocked

    async def _ask(self, query: str, variables: object, *, queues_unknown: bool = False) -> Any:
        """Return the data of an answer; None if `queues_unknown` and this version of the host has no queues."""
        body = {"query": query, "variables": variables}
        answer = await self._client.request("enqueue", "POST", "/graphql", body=body, priority=Priority.MERGE)
        value = answer.value if isinstance(answer.value, dict) else {}
        errors = value.get("errors")
        if not errors:
            return value.get("data")
        first = errors[0] if isinstance(errors, list) and isinstance(errors[0], dict) else {}
        said = str(first.get("message", ""))
        quoted = self._client.quoted(said)
        if queues_unknown and "mergeQueue" in said and "exist" in said:
            return None
        if "not accessible" in said:
            needed = self._client.host.permissions.get("enqueue", "")
            raise AccessDenied(
                f"{self._client.host.name} refused the merge queue{quoted}", remedy=f"Give the token {needed}"
            )
        if "head branch was modified" in said.lower() or "expectedheadoid" in said.lower():
            raise HeadMoved(f"{self._client.host.name} refused to queue{quoted}")
        if query is _ENQUEUE:
            raise MergeBlocked(f"{self._client.host.name} refused to queue{quoted}")
        raise UnknownAnswer(f"{self._client.host.name} answered the merge queue with an error{quoted}")

    def _check_removal(self, found: ApiQueuedPullRequest, number: int, base: str) -> None:
        removed = found.removal()
        if removed is None:
            return
        by = self._client.quoted(removed.actor.login if removed.actor is not None else None, before=" by ")
        why = self._client.quoted(removed.reason)
        blocked = MergeBlocked(
            f"pull request {number} was taken out of the merge queue of {base}{by}{why}",
            remedy="Put it back there, add a commit to it, or close it",
        )
        blocked.blocked = True
        raise blocked
