"""Reviewers, assignees and labels of a pull request at GitHub, which are set after it is opened.

If one name is no collaborator, GitHub refuses all reviewers of a request; assignees that it does not accept are
silently left out.

https://docs.github.com/en/rest/pulls/review-requests and https://docs.github.com/en/rest/issues/assignees
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic import BaseModel

from kardinal.scm.assigning import NO_ACCESS, assign, folded
from kardinal.scm.base import Assignments, Unassigned
from kardinal.scm.github_values import ApiLabel, ApiReview, ApiUser
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GitHubAssigning"]

_PAGE = "100"


class ApiTeam(BaseModel):
    slug: str = ""


class ApiAssigned(BaseModel):
    """The people and labels of a pull request, or of its issue."""

    user: ApiUser | None = None
    requested_reviewers: list[ApiUser] = []
    requested_teams: list[ApiTeam] = []
    assignees: list[ApiUser] = []
    labels: list[ApiLabel] = []


class GitHubAssigning:
    """Add people and labels to the pull requests of one repository."""

    def __init__(self, client: HostClient, path: str, *, owner: str) -> None:
        self._client = client
        self._path = path
        self._owner = owner

    async def assign(self, number: int, wanted: Assignments) -> list[Unassigned]:
        """Add the missing names; return the names that GitHub does not accept."""
        age = self._client.age(f"{self._path} {number}")
        answer = await self._client.request("get", "GET", f"{self._path}/pulls/{number}", age=age)
        found = parsed(ApiAssigned, answer.value)
        return await assign(_Assigned(self._client, self._path, number, found), wanted, owner=self._owner)


class _Assigned:
    """One pull request as `Assigned`."""

    no_team = NO_ACCESS
    no_assignee = f"{NO_ACCESS}, and not more than ten"

    def __init__(self, client: HostClient, path: str, number: int, found: ApiAssigned) -> None:
        self._client = client
        self._path = path
        self._number = number
        self.author = found.user.login.casefold() if found.user else ""
        self.reviewers = _logins(found.requested_reviewers)
        self.teams = _slugs(found.requested_teams)
        self.assignees = _logins(found.assignees)
        self.labels = folded(label.name for label in found.labels)

    async def reviewed(self) -> frozenset[str]:
        """Return who has reviewed already: a new request would make them appear as if they had not."""
        path = f"{self._path}/pulls/{self._number}/reviews"
        pages = self._client.pages("approvals", path, query={"per_page": _PAGE}, age=self._age)
        reviews = [parsed(ApiReview, item) async for item in pages]
        return folded(review.user.login for review in reviews if review.user)

    async def assignable(self) -> None:
        """Return None: the host leaves out whom it does not accept."""

    async def add_reviewers(self, names: Sequence[str]) -> Collection[str]:
        """Request reviews of users."""
        path = f"/pulls/{self._number}/requested_reviewers"
        return _logins((await self._sent("reviewers", path, {"reviewers": names})).requested_reviewers)

    async def add_teams(self, names: Sequence[str]) -> Collection[str]:
        """Request reviews of teams."""
        path = f"/pulls/{self._number}/requested_reviewers"
        return _slugs((await self._sent("team-reviewers", path, {"team_reviewers": names})).requested_teams)

    async def add_assignees(self, names: Sequence[str]) -> Collection[str]:
        """Assign users."""
        path = f"/issues/{self._number}/assignees"
        return _logins((await self._sent("assignees", path, {"assignees": names})).assignees)

    async def add_labels(self, names: Sequence[str]) -> None:
        """Add labels, all of which the host accepts."""
        path = f"{self._path}/issues/{self._number}/labels"
        await self._client.request("labels", "POST", path, body={"labels": names}, age=self._age)

    async def _sent(self, operation: str, path: str, body: object) -> ApiAssigned:
        answer = await self._client.request(operation, "POST", f"{self._path}{path}", body=body, age=self._age)
        return parsed(ApiAssigned, answer.value)

    @property
    def _age(self) -> float:
        return self._client.age(f"{self._path} {self._number}")


def _logins(users: Sequence[ApiUser]) -> frozenset[str]:
    return folded(user.login for user in users)


def _slugs(teams: Sequence[ApiTeam]) -> frozenset[str]:
    return folded(team.slug for team in teams)
