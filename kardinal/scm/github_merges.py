"""The merge of a pull request at GitHub: its method, the merge queue, and the deletion of its branch."""

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
)
from kardinal.scm.github_methods import merge_method
from kardinal.scm.github_queue import MergeQueue
from kardinal.scm.github_values import ApiPullRequest, ApiReference
from kardinal.scm.http import HostClient, Outcome, Priority
from kardinal.scm.values import parsed, squash_text
from kardinal.tree.commit_message import CommitMessage

__all__ = ["GitHubMerges"]


class GitHubMerges:
    """The `MergeCalls` of one repository, whose path in the API is `path`."""

    def __init__(self, client: HostClient, path: str, queue: MergeQueue) -> None:
        self._client = client
        self._path = path
        self._queue = queue

    async def get(self, number: int) -> ApiPullRequest:
        """Return one pull request."""
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request("get", "GET", path, priority=Priority.MERGE, age=self._age(str(number)))
        return parsed(ApiPullRequest, answer.value)

    async def prepare(
        self, found: ApiPullRequest, *, method: MergeMethod | None, expected_head: str | None
    ) -> MergeMethod:
        """Return the method to merge by, or enter the merge queue of the base, which raises `MergeBlocked`."""
        shown = found.pull_request()
        if shown.mergeable is False:
            raise ConflictWithBase(
                f"pull request {shown.number} conflicts with {shown.base}",
                remedy="Promote again, or resolve the conflict on the branch",
            )
        if behind := _behind(shown):
            raise behind
        linear = await self._queue.enter(shown, expected_head=expected_head)
        return await merge_method(self._client, self._path, shown.base, wanted=method, linear=linear)

    async def send(
        self,
        found: ApiPullRequest,
        *,
        method: MergeMethod | None,
        expected_head: str | None,
        message: CommitMessage | None,
    ) -> bool:
        """Ask the host to merge the head that was read."""
        body = {"sha": found.head.sha, "merge_method": method}
        if method == "squash" and message is not None:
            body["commit_title"], body["commit_message"] = squash_text(message, found.number)
        path = f"{self._path}/pulls/{found.number}/merge"
        age = self._age(str(found.number))
        answer = await self._client.request("merge", "PUT", path, body=body, priority=Priority.MERGE, age=age)
        return answer.outcome is Outcome.REREAD

    def why_open(self, found: ApiPullRequest, *, blocked: MergeBlocked | None, moved: bool) -> Exception | None:
        """Return `BehindBase` if the host requires commits of the base."""
        return _behind(found.pull_request())

    async def clean_up(self, merged: PullRequest) -> None:
        """Delete the branch. The merge counts even if it cannot be deleted; a person may have deleted it."""
        with suppress(HostError):
            await self._drop_branch(merged)

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None:
        """Make the host merge the base into the head, which it does in the background."""
        body = {} if expected_head is None else {"expected_head_sha": expected_head}
        path = f"{self._path}/pulls/{number}/update-branch"
        age = self._age(str(number))
        answer = await self._client.request("update-branch", "PUT", path, body=body, priority=Priority.MERGE, age=age)
        if answer.outcome is Outcome.REREAD:
            raise HeadMoved(f"the head of pull request {number} is no longer at {expected_head}")

    async def _drop_branch(self, merged: PullRequest) -> None:
        """Delete the branch of a merged pull request, unless a person has added to it."""
        reference = quoted(f"heads/{merged.head}").replace("%2F", "/")
        answer = await self._client.request("branch", "GET", f"{self._path}/git/ref/{reference}")
        if answer.status == 200 and parsed(ApiReference, answer.value).object.sha == merged.head_commit:
            await self._client.request("delete-branch", "DELETE", f"{self._path}/git/refs/{reference}")

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def _behind(found: PullRequest) -> BehindBase | None:
    return BehindBase(f"pull request {found.number} is behind {found.base}") if found.behind else None
