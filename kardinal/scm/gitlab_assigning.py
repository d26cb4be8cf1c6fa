"""Reviewers, assignees and labels of a merge request at GitLab, which identifies users by number.

GitLab silently leaves out users who may not see the project, and all but the first if its plan allows only one.

https://docs.gitlab.com/api/merge_requests/#update-mr
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from pydantic import BaseModel, RootModel

from kardinal.scm.assigning import NO_ACCESS, add, folded, unassigned
from kardinal.scm.base import Assignments, Unassigned
from kardinal.scm.errors import UnsupportedProvider
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GitLabAssigning"]

_ONE_ALONE = f"{NO_ACCESS}, and GitLab Free takes one alone"

_Field = Literal["reviewers", "assignees"]
_IDS = {"reviewers": "reviewer_ids", "assignees": "assignee_ids"}


class ApiMember(BaseModel):
    id: int
    username: str


class ApiMembers(RootModel[list[ApiMember]]):
    """The users with one name: none or one."""


class ApiAssigned(BaseModel):
    """The people and labels of a merge request."""

    reviewers: list[ApiMember] = []
    assignees: list[ApiMember] = []
    labels: list[str] = []

    def people(self, field: _Field) -> list[ApiMember]:
        return self.reviewers if field == "reviewers" else self.assignees


class GitLabAssigning:
    """Add people and labels to the merge requests of one project."""

    def __init__(self, client: HostClient, path: str) -> None:
        self._client = client
        self._path = path

    async def assign(self, number: int, wanted: Assignments) -> list[Unassigned]:
        """Add the missing names; return the names that GitLab does not accept."""
        if wanted.team_reviewers:
            remedy = "Leave git.pullRequest.teamReviewers out"
            raise UnsupportedProvider("GitLab asks users for a review, and no groups", remedy=remedy)
        answer = await self._client.request("get", "GET", self._one(number), age=self._age(number))
        found = parsed(ApiAssigned, answer.value)
        return [
            *await self._people("reviewers", number, wanted.reviewers, found),
            *await self._people("assignees", number, wanted.assignees, found),
            *await self._labels(number, wanted.labels, found),
        ]

    async def _people(self, field: _Field, number: int, names: Sequence[str], found: ApiAssigned) -> list[Unassigned]:
        there = found.people(field)
        present = folded(member.username for member in there)
        members = dict[str, int]()
        unknown = list[str]()
        for name in names:
            if name.casefold() in present:
                continue
            member = await self._member(name)
            if member is None:
                unknown.append(name)
            else:
                members[name] = member.id

        async def adding(missing: Sequence[str]) -> Collection[str]:
            # The list replaces the previous one.
            ids = [*(member.id for member in there), *(members[name] for name in missing)]
            after = await self._put(field, number, {_IDS[field]: ids})
            there[:] = after.people(field)
            return folded(member.username for member in there)

        refused = await add(field, list(members), adding, otherwise=_ONE_ALONE)
        return [*unassigned(field, unknown, "no user has this name"), *refused]

    async def _labels(self, number: int, names: Sequence[str], found: ApiAssigned) -> list[Unassigned]:
        async def adding(missing: Sequence[str]) -> Collection[str]:
            return folded((await self._put("labels", number, {"add_labels": ",".join(missing)})).labels)

        return await add("labels", names, adding, there=folded(found.labels), otherwise=NO_ACCESS)

    async def _member(self, name: str) -> ApiMember | None:
        answer = await self._client.request("users", "GET", "/users", query={"username": name})
        found = parsed(ApiMembers, answer.value).root
        return next((member for member in found if member.username.casefold() == name.casefold()), None)

    async def _put(self, operation: str, number: int, body: object) -> ApiAssigned:
        answer = await self._client.request(operation, "PUT", self._one(number), body=body, age=self._age(number))
        return parsed(ApiAssigned, answer.value)

    def _one(self, number: int) -> str:
        return f"{self._path}/merge_requests/{number}"

    def _age(self, number: int) -> float:
        return self._client.age(f"{self._path} {number}")
