"""The merge of a pull request at Gitea and Forgejo."""

from __future__ import annotations

from typing import Any

from kardinal.scm.base import MergeMethod, PullRequest
from kardinal.scm.errors import MergeBlocked
from kardinal.scm.gitea_access import GiteaAccess
from kardinal.scm.gitea_values import ApiPullRequest
from kardinal.scm.http import HostClient, Priority
from kardinal.scm.values import parsed, squash_text
from kardinal.tree.commit_message import CommitMessage

__all__ = ["GiteaMerges"]


class GiteaMerges:
    """The `MergeCalls` of one repository, whose path in the API is `path`."""

    def __init__(self, client: HostClient, path: str, access: GiteaAccess) -> None:
        self._client = client
        self._path = path
        self._access = access

    async def get(self, number: int) -> ApiPullRequest:
        """Return one pull request."""
        path = f"{self._path}/pulls/{number}"
        answer = await self._client.request("get", "GET", path, priority=Priority.MERGE, age=self._age(number))
        return parsed(ApiPullRequest, answer.value)

    async def prepare(
        self, found: ApiPullRequest, *, method: MergeMethod | None, expected_head: str | None
    ) -> MergeMethod | None:
        """Return `method` unchanged; with None, Gitea merges by the default method of the repository."""
        return method

    async def send(
        self,
        found: ApiPullRequest,
        *,
        method: MergeMethod | None,
        expected_head: str | None,
        message: CommitMessage | None,
    ) -> bool:
        """Ask the host to merge, and to delete the branch then."""
        way = method or (await self._access.repository()).default_merge_style or "merge"
        body: dict[str, Any] = {"Do": way, "delete_branch_after_merge": True}
        if way == "squash" and message is not None:
            body["MergeTitleField"], body["MergeMessageField"] = squash_text(message, found.number)
        if expected_head is not None:
            body["head_commit_id"] = expected_head
        path = f"{self._path}/pulls/{found.number}/merge"
        answer = await self._client.request("merge", "POST", path, body=body, priority=Priority.MERGE)
        return answer.status == 409

    def why_open(self, found: ApiPullRequest, *, blocked: MergeBlocked | None, moved: bool) -> Exception | None:
        """Return None, because the pull request does not say it."""
        return None

    async def clean_up(self, merged: PullRequest) -> None:
        """Do nothing, because the host deletes the branch."""

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None:
        """Make the host merge the base into the head; it cannot check `expected_head`."""
        path = f"{self._path}/pulls/{number}/update"
        query = {"style": "merge"}
        age = self._age(number)
        await self._client.request("update-branch", "POST", path, query=query, priority=Priority.MERGE, age=age)

    def _age(self, number: int) -> float:
        return self._client.age(f"{self._path} {number}")
