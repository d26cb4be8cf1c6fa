"""Statuses of commits at GitLab, which belong to pipelines.

A status belongs to a pipeline of its commit. GitLab uses the newest pipeline with the given `ref` and `pipeline_id`.
Without them it takes the newest pipeline of all, or creates one for a branch that contains the commit, which can become
the head pipeline of a merge request in place of a failed one. So a status is sent with the number of the head pipeline
of the commit's merge request and that pipeline's own `ref`, such as `refs/merge-requests/7/head`. If there is no such
pipeline, it is sent with the branch of the merge request:

https://docs.gitlab.com/api/commits/#set-commit-pipeline-status
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardinal.scm.addresses import quoted
from kardinal.scm.base import CommitStatus
from kardinal.scm.gitlab_values import SENT_STATES, ApiMergeRequest, ApiStatus, newest_statuses
from kardinal.scm.http import HostClient, Outcome, Priority
from kardinal.scm.values import parsed

__all__ = ["GitLabCommits"]

_PAGE = "100"
_DESCRIPTION = 255
"""The maximum length of a status description at GitLab, in characters."""


class GitLabCommits:
    """The commits of one project, whose API is below `path`."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def statuses(self, commit: str) -> Mapping[str, CommitStatus]:
        """Return the newest status of each name of a commit, in any pipeline."""
        found = newest_statuses(await self._statuses(commit, Priority.OPEN))
        return {name: one.commit_status() for name, one in found.items()}

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool:
        """Write a status unless its pipeline has it already; a long description is cut.

        GitLab refuses a second `pending` of the same name, so the description of the first one is kept.
        """
        description = status.description[:_DESCRIPTION]
        place = await self._place(commit, priority)
        found = [one for one in await self._statuses(commit, priority) if one.may_be_in(place.get("pipeline_id"))]
        newest = newest_statuses(found).get(status.context)
        there = newest.commit_status() if newest is not None else None
        same = CommitStatus(status.context, status.state, description, status.url)
        if there is not None and (there == same or there.state == status.state == "pending"):
            return False
        body = {"state": SENT_STATES[status.state], "name": status.context, "description": description, **place}
        if status.url:
            body["target_url"] = status.url
        path = f"{self._path}/statuses/{quoted(commit)}"
        age = self._age(commit)
        answer = await self._client.request("set-status", "POST", path, body=body, priority=priority, age=age)
        return answer.outcome is Outcome.SUCCESS

    async def _place(self, commit: str, priority: Priority) -> Mapping[str, Any]:
        """Return `pipeline_id` and `ref` of the pipeline of a commit's merge request, as far as they exist.

        A branch of a fork does not belong to this project, and kardinal must not write to pipelines there.
        """
        path = f"{self._path}/repository/commits/{quoted(commit)}/merge_requests"
        query = {"state": "opened", "per_page": _PAGE}
        age = self._age(commit)
        pages = self._client.pages("statuses", path, query=query, priority=priority, age=age)
        requests = [one async for item in pages if (one := parsed(ApiMergeRequest, item)).sha == commit]
        if not requests:
            return {}
        proposing = min(requests, key=lambda one: (not one.of_this_project, one.iid))
        shown = f"{self._path}/merge_requests/{proposing.iid}"
        answer = await self._client.request("statuses", "GET", shown, priority=priority, age=age)
        found = parsed(ApiMergeRequest, answer.value)
        pipeline = found.head_pipeline
        if pipeline is not None and pipeline.sha == commit and pipeline.project_id in (None, found.target_project_id):
            return {"pipeline_id": pipeline.id, "ref": pipeline.ref}
        return {"ref": found.source_branch} if found.of_this_project else {}

    async def _statuses(self, commit: str, priority: Priority) -> list[ApiStatus]:
        path = f"{self._path}/repository/commits/{quoted(commit)}/statuses"
        query = {"per_page": _PAGE}
        age = self._age(commit)
        pages = self._client.pages("statuses", path, query=query, priority=priority, age=age)
        return [parsed(ApiStatus, item) async for item in pages]

    def _age(self, commit: str) -> float:
        return self._client.age(f"{self._path} {commit}")
