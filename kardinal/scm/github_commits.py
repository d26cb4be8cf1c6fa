"""Statuses of commits at GitHub, the files that commits change, and the commits that merge queues test."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kardinal.objects.text import cut
from kardinal.scm.addresses import quoted
from kardinal.scm.base import CommitStatus, MergeGroup
from kardinal.scm.errors import UnknownAnswer
from kardinal.scm.github_values import ApiCombinedStatus, ApiComparison, ApiNamedReference
from kardinal.scm.http import HostClient, Priority
from kardinal.scm.values import parsed

__all__ = ["GitHubCommits"]

_PAGE = "100"
_DESCRIPTION = 140
"""The maximum length of a status description at GitHub, in characters."""
_FILES = 300
"""The most files that a comparison lists."""
_QUEUES = "gh-readonly-queue/"
_GROUP = re.compile(r"refs/heads/gh-readonly-queue/(?P<base>.{1,255})/pr-(?P<number>[1-9][0-9]{0,8})-[0-9a-f]{40}")
"""https://docs.github.com/en/repositories/configuring-branches-and-merges-in-your-repository/configuring-pull-request-merges/managing-a-merge-queue"""
_GROUPS = 100
"""The most branches of merge queues that are examined."""


class GitHubCommits:
    """The commits of one repository, whose API is below `path`."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def statuses(self, commit: str, priority: Priority = Priority.OPEN) -> Mapping[str, CommitStatus]:
        """Return the newest status of each context of a commit."""
        found: dict[str, CommitStatus] = {}
        path = f"{self._path}/commits/{quoted(commit)}/status"
        age = self._age(commit)
        page = 1
        while True:
            query = {"per_page": _PAGE, "page": str(page)}
            answer = await self._client.request("statuses", "GET", path, query=query, priority=priority, age=age)
            statuses = parsed(ApiCombinedStatus, answer.value).statuses
            found.update({one.context: one.commit_status() for one in statuses})
            if 'rel="next"' not in answer.headers.get("link", ""):
                return found
            page += 1

    async def set_status(self, commit: str, status: CommitStatus, priority: Priority) -> bool:
        """Write a status unless the commit has it already; a long description is cut."""
        description = cut(status.description, _DESCRIPTION)
        wanted = CommitStatus(status.context, status.state, description, status.url)
        if (await self.statuses(commit, priority)).get(status.context) == wanted:
            return False
        body = {"context": status.context, "state": status.state, "description": description}
        if status.url:
            body["target_url"] = status.url
        path = f"{self._path}/statuses/{quoted(commit)}"
        await self._client.request("set-status", "POST", path, body=body, priority=priority, age=self._age(commit))
        return True

    async def merge_groups(self) -> Sequence[MergeGroup]:
        """Return the commits under test: GitHub keeps a branch for each, named by base and pull request."""
        path = f"{self._path}/git/matching-refs/heads/{_QUEUES}"
        answer = await self._client.request("queue", "GET", path, priority=Priority.POLL)
        if not isinstance(answer.value, list):
            raise UnknownAnswer(f"{self._client.host.name} answered queue with something else than a list")
        groups = (_merge_group(parsed(ApiNamedReference, item)) for item in answer.value[:_GROUPS])
        return [group for group in groups if group is not None]

    async def changed_files(self, commit: str, *, base: str) -> Sequence[str] | None:
        """Compare by commit, because the pull request may show the files of a later commit."""
        path = f"{self._path}/compare/{quoted(base)}...{quoted(commit)}"
        age = self._age(commit)
        query = {"per_page": "1"}
        answer = await self._client.request("files", "GET", path, query=query, priority=Priority.POLL, age=age)
        files = parsed(ApiComparison, answer.value).files
        if len(files) >= _FILES:
            return None
        return [name for file in files for name in (file.filename, file.previous_filename) if name]

    def _age(self, commit: str) -> float:
        return self._client.age(f"{self._path} {commit}")


def _merge_group(reference: ApiNamedReference) -> MergeGroup | None:
    named = _GROUP.fullmatch(reference.ref)
    return MergeGroup(reference.object.sha, named["base"], int(named["number"])) if named else None
