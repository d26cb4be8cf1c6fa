"""The merge of a merge request at GitLab: its method, its conditions, and the rebase that a fast-forward needs.

How a project merges is one setting of the project: with a merge commit, or by fast-forward; each with squashing or
without. A merge by fast-forward needs a branch on top of its base, which the host can rebase.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.scm.base import MergeMethod
from kardinal.scm.errors import (
    BehindBase,
    ConflictWithBase,
    HeadMoved,
    MergeBlocked,
    PullRequestEnded,
    RequestRefused,
    UnknownAnswer,
)
from kardinal.scm.gitlab_values import ApiMergeRequest, ApiProject
from kardinal.scm.http import HostClient, Outcome, Priority
from kardinal.scm.values import parsed
from kardinal.steps.commit_message import CommitMessage

__all__ = ["GitLabMerges"]

_PAUSE = 1.0


class GitLabMerges:
    """The merges of one project, whose path in the API is `path`."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def merge(
        self, number: int, *, method: MergeMethod | None, expected_head: str | None, message: CommitMessage | None
    ) -> ApiMergeRequest:
        """Merge, unless it is merged already; the host deletes the branch."""
        found = await self._get(number)
        if found.state not in ("merged", "closed"):
            if expected_head not in (None, found.sha):
                raise HeadMoved(f"branch {found.source_branch} is at {found.sha}, and no longer at {expected_head}")
            _check_conflict(found)
            if found.needs_rebase:
                raise BehindBase(f"merge request {number} has to be rebased onto {found.target_branch}")
            project = await self._project()
            self._check_train(found, project)
            self._check_method(method, project)
            found = await self._merge(found, method, message)
        if found.state == "closed":
            raise PullRequestEnded(f"merge request {number} is closed", remedy="Promote again to open a new one")
        return found

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None:
        """Have the host rebase the branch, which it does in the background.

        Others may add commits meanwhile, so what comes out is looked at in Git.
        """
        asked = {"include_rebase_in_progress": "true"}
        found = await self._get(number, asked)
        if found.rebase_in_progress:
            raise MergeBlocked(f"merge request {number} is being rebased")
        if expected_head not in (None, found.sha):
            raise HeadMoved(f"branch {found.source_branch} is at {found.sha}, and no longer at {expected_head}")
        path, age = f"{self._one(number)}/rebase", self._age(str(number))
        await self._client.request("rebase", "PUT", path, priority=Priority.MERGE, age=age)
        rebased = await self._get(number, asked)
        if rebased.merge_error and not rebased.rebase_in_progress:
            raise ConflictWithBase(
                f"merge request {number} cannot be rebased: {rebased.merge_error[:200]}",
                remedy="Promote again, or resolve the conflict on the branch",
            )

    def _check_train(self, found: ApiMergeRequest, project: ApiProject) -> None:
        """Refuse to pass by the merge train of a project, which the API would do."""
        if project.merge_trains_enabled:
            blocked = MergeBlocked(
                f"merge request {found.iid} goes through the merge train of {found.target_branch}, which kardinal does "
                "not pass by",
                remedy="Add it to the train on its page",
            )
            blocked.blocked = True
            raise blocked

    def _check_method(self, method: MergeMethod | None, project: ApiProject) -> None:
        if method is not None and method not in project.merge_methods:
            raise RequestRefused(
                f"{self._client.host.name} merges this project in another way than {method}",
                remedy="Set git.mergeMethod to the way of the project, or change its settings for merge requests",
            )

    async def _merge(
        self, found: ApiMergeRequest, method: MergeMethod | None, message: CommitMessage | None
    ) -> ApiMergeRequest:
        body: dict[str, Any] = {"sha": found.sha, "should_remove_source_branch": True}
        if method is not None:
            body["squash"] = method == "squash"
        if method in (None, "squash") and message is not None:
            body["squash_commit_message"] = str(message)  # not used where the project does not squash
        path, age = f"{self._one(found.iid)}/merge", self._age(str(found.iid))
        blocked: MergeBlocked | None = None
        moved = False
        try:
            answer = await self._client.request("merge", "PUT", path, body=body, priority=Priority.MERGE, age=age)
            moved = answer.outcome is Outcome.REREAD
        except MergeBlocked as error:
            blocked = error  # or merged by a request whose answer was lost
        merged = await self._get(found.iid)
        if merged.state in ("merged", "closed"):
            return merged
        if moved:
            raise HeadMoved(f"branch {found.source_branch} moved to {merged.sha} while it was to be merged")
        _check_conflict(merged)
        if blocked is not None or merged.state == "locked":
            why = merged.merge_error or merged.detailed_merge_status or merged.state
            said = MergeBlocked(f"merge request {found.iid} cannot be merged yet: {why[:200]}")
            said.retry_after = blocked.retry_after if blocked else _PAUSE
            raise said
        raise UnknownAnswer(f"{self._client.host.name} answered success to merge, and did not merge")

    async def _get(self, number: int, query: Mapping[str, str] | None = None) -> ApiMergeRequest:
        answer = await self._client.request(
            "get", "GET", self._one(number), query=query, priority=Priority.MERGE, age=self._age(str(number))
        )
        return parsed(ApiMergeRequest, answer.value)

    async def _project(self) -> ApiProject:
        return parsed(ApiProject, (await self._client.request("access", "GET", self._path)).value)

    def _one(self, number: int) -> str:
        return f"{self._path}/merge_requests/{number}"

    def _age(self, name: str) -> float:
        return self._client.age(f"{self._path} {name}")


def _check_conflict(found: ApiMergeRequest) -> None:
    if found.conflicts:
        raise ConflictWithBase(
            f"merge request {found.iid} conflicts with {found.target_branch}",
            remedy="Promote again, or resolve the conflict on the branch",
        )
