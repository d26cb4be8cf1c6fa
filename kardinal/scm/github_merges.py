"""The merge of a pull request at GitHub: its method, the queue of its base, and its branch, which is deleted then."""

from __future__ import annotations

from contextlib import suppress

from kardinal.scm.addresses import quoted
from kardinal.scm.base import MergeMethod, PullRequest
from kardinal.scm.errors import (
    BehindBase,
    ConflictWithBase,
    HeadMoved,
    HostError,
    MergeBlocked,
    PullRequestEnded,
    UnknownAnswer,
)
from kardinal.scm.github_methods import merge_method
from kardinal.scm.github_queue import MergeQueue
from kardinal.scm.github_values import ApiPullRequest, ApiReference
from kardinal.scm.http import HostClient, Outcome, Priority
from kardinal.scm.values import parsed, squash_text
from kardinal.steps.commit_message import CommitMessage

__all__ = ["GitHubMerges"]


class GitHubMerges:
    """The merges of one repository, whose path in the API is `path`."""

    def __init__(self, client: HostClient, path: str, queue: MergeQueue) -> None:
        self._client = client
        self._path = path
        self._queue = queue

    async def merge(
        self, number: int, *, method: MergeMethod | None, expected_head: str | None, message: CommitMessage | None
    ) -> PullRequest:
        """Merge, or enter the merge queue of the base."""
        found = await self._get(number)
        if found.state == "open":
            if expected_head not in (None, found.head_commit):
                raise HeadMoved(f"branch {found.head} is at {found.head_commit}, and no longer at {expected_head}")
            if found.mergeable is False:
                raise ConflictWithBase(
                    f"pull request {number} conflicts with {found.base}",
                    remedy="Promote again, or resolve the conflict on the branch",
                )
            _check_behind(found)
            linear = await self._queue.enter(found, expected_head=expected_head)
            way = await merge_method(self._client, self._path, found.base, wanted=method, linear=linear)
            found = await self._merge(found, way, message)
        if found.state == "closed":
            raise PullRequestEnded(f"pull request {number} is closed", remedy="Promote again to open a new one")
        return found

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None:
        """Have the host merge the base into the head, which it does in the background."""
        body = {} if expected_head is None else {"expected_head_sha": expected_head}
        path, age = f"{self._path}/pulls/{number}/update-branch", self._age(str(number))
        answer = await self._client.request("update-branch", "PUT", path, body=body, priority=Priority.MERGE, age=age)
        if answer.outcome is Outcome.REREAD:
            raise HeadMoved(f"the head of pull request {number} is no longer at {expected_head}")

    async def _merge(self, found: PullRequest, way: MergeMethod, message: CommitMessage | None) -> PullRequest:
        body = {"sha": found.head_commit, "merge_method": way}
        if way == "squash" and message is not None:
            body["commit_title"], body["commit_message"] = squash_text(message, found.number)
        path, age = f"{self._path}/pulls/{found.number}/merge", self._age(str(found.number))
        blocked: MergeBlocked | None = None
        moved = False
        try:
            answer = await self._client.request("merge", "PUT", path, body=body, priority=Priority.MERGE, age=age)
            moved = answer.outcome is Outcome.REREAD
        except MergeBlocked as error:
            blocked = error  # or merged by a request whose answer was lost
        merged = await self._get(found.number)
        if merged.state == "open":
            _check_behind(merged)
            if blocked is not None:
                raise blocked
            if moved:
                raise HeadMoved(f"branch {found.head} moved to {merged.head_commit} while it was to be merged")
            raise UnknownAnswer(f"{self._client.host.name} answered success to merge, and did not merge")
        if merged.state == "merged":
            # It is merged whatever becomes of the branch, which a person deletes as well.
            with suppress(HostError):
                await self._drop_branch(merged)
        return merged

    async def _drop_branch(self, merged: PullRequest) -> None:
        """Delete the branch of a merged pull request, unless a person has added to it."""
        reference = quoted(f"heads/{merged.head}").replace("%2F", "/")
        answer = await self._client.request("branch", "GET", f"{self._path}/git/ref/{reference}")
        if answer.status == 200 and parsed(ApiReference, answer.value).object.sha == merged.head_commit:
            await self._client.request("delete-branch", "DELETE", f"{self._path}/git/refs/{reference}")

    async def _get(self, number: int) -> PullRequest:
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request("get", "GET", path, priority=Priority.MERGE, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value).pull_request()

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def _check_behind(found: PullRequest) -> None:
    if found.behind:
        raise BehindBase(f"pull request {found.number} is behind {found.base}")
