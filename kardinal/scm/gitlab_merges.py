"""The merge of a merge request at GitLab: its method, its conditions, and the rebase before a fast-forward.

The merge method is a setting of the project: a merge commit or a fast-forward, each with or without squashing. A
fast-forward requires a branch on top of its base, which the host can rebase.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kardinal.scm.base import MergeMethod, PullRequest
from kardinal.scm.errors import (
    BehindBase,
    ConflictWithBase,
    HeadMoved,
    MergeBlocked,
    RequestRefused,
)
from kardinal.scm.gitlab_values import ApiMergeRequest, ApiProject
from kardinal.scm.http import HostClient, Outcome, Priority
from kardinal.scm.values import parsed
from kardinal.tree.commit_message import CommitMessage

__all__ = ["GitLabMerges"]

_PAUSE = 1.0


class GitLabMerges:
    """The `MergeCalls` of one project, whose path in the API is `path`."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def get(self, number: int) -> ApiMergeRequest:
        """Return one merge request."""
        return await self._get(number)

    async def prepare(
        self, found: ApiMergeRequest, *, method: MergeMethod | None, expected_head: str | None
    ) -> MergeMethod | None:
        """Return the given method, unless a conflict, a rebase, a merge train or the project's settings forbid it."""
        _check_conflict(found)
        if found.needs_rebase:
            raise BehindBase(f"merge request {found.iid} has to be rebased onto {found.target_branch}")
        project = await self._project()
        self._check_train(found, project)
        self._check_method(method, project)
        return method

    async def send(
        self,
        found: ApiMergeRequest,
        *,
        method: MergeMethod | None,
        expected_head: str | None,
        message: CommitMessage | None,
    ) -> bool:
        """Ask the host to merge the head that was read, and to delete the branch then."""
        body: dict[str, Any] = {"sha": found.sha, "should_remove_source_branch": True}
        if method is not None:
            body["squash"] = method == "squash"
        if method in (None, "squash") and message is not None:
            body["squash_commit_message"] = str(message)  # ignored if the project does not squash
        path = f"{self._one(found.iid)}/merge"
        age = self._age(str(found.iid))
        answer = await self._client.request("merge", "PUT", path, body=body, priority=Priority.MERGE, age=age)
        return answer.outcome is Outcome.REREAD

    def why_open(self, found: ApiMergeRequest, *, blocked: MergeBlocked | None, moved: bool) -> Exception | None:
        """Return the conflict or the reason for which it cannot be merged yet."""
        if moved:
            return None
        if found.conflicts:
            return _conflict(found)
        if blocked is None and found.state != "locked":
            return None
        state = f": {_identifier(found.detailed_merge_status) or _identifier(found.state)}"
        why = self._client.quoted(found.merge_error) or state
        said = MergeBlocked(f"merge request {found.iid} cannot be merged yet{why}")
        said.retry_after = blocked.retry_after if blocked else _PAUSE
        return said

    async def clean_up(self, merged: PullRequest) -> None:
        """Do nothing, because the host deletes the branch."""

    async def bring_up_to_date(self, number: int, *, expected_head: str | None) -> None:
        """Make the host rebase the branch, which it does in the background.

        Others may add commits meanwhile, so the caller examines the result in Git.
        """
        asked = {"include_rebase_in_progress": "true"}
        found = await self._get(number, asked)
        if found.rebase_in_progress:
            raise MergeBlocked(f"merge request {number} is being rebased")
        if expected_head is not None and expected_head != found.sha:
            raise HeadMoved.away_from(expected_head, branch=found.source_branch, at=found.sha)
        path = f"{self._one(number)}/rebase"
        age = self._age(str(number))
        await self._client.request("rebase", "PUT", path, priority=Priority.MERGE, age=age)
        rebased = await self._get(number, asked)
        if rebased.merge_error and not rebased.rebase_in_progress:
            raise ConflictWithBase(
                f"merge request {number} cannot be rebased{self._client.quoted(rebased.merge_error)}",
                remedy="Promote again, or resolve the conflict on the branch",
            )

    def _check_train(self, found: ApiMergeRequest, project: ApiProject) -> None:
        """Refuse to bypass the merge train of a project, which the API would do."""
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


def _identifier(text: str) -> str:
    """Return a value of the API if it is an identifier, such as `ci_must_pass`; otherwise empty text."""
    return text if re.fullmatch("[a-z_]{1,40}", text) else ""


def _check_conflict(found: ApiMergeRequest) -> None:
    if found.conflicts:
        raise _conflict(found)


def _conflict(found: ApiMergeRequest) -> ConflictWithBase:
    return ConflictWithBase(
        f"merge request {found.iid} conflicts with {found.target_branch}",
        remedy="Promote again, or resolve the conflict on the branch",
    )
