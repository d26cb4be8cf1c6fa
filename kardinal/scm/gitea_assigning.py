"""Reviewers, assignees and labels of a pull request at Gitea and Forgejo.

If one name does not exist, the host refuses all reviewers of a request. It answers 500 for an assignee without access
to the repository, so the list of possible assignees is read first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic import BaseModel, RootModel

from kardinal.scm.assigning import NO_ACCESS, assign, folded
from kardinal.scm.base import Assignments, Unassigned
from kardinal.scm.gitea_labels import GiteaLabels
from kardinal.scm.gitea_values import ApiLabel, ApiReview, ApiUser
from kardinal.scm.http import HostClient
from kardinal.scm.values import parsed

__all__ = ["GiteaAssigning"]

_PAGE = "50"


class ApiTeam(BaseModel):
    name: str = ""


class ApiUsers(RootModel[list[ApiUser]]):
    """The possible assignees; the host does not divide them into pages."""


class ApiAssigned(BaseModel):
    """The people and labels of a pull request; an older host does not report the teams."""

    user: ApiUser | None = None
    requested_reviewers: list[ApiUser] | None = None
    requested_reviewers_teams: list[ApiTeam] | None = None
    assignees: list[ApiUser] | None = None
    labels: list[ApiLabel] | None = None


class GiteaAssigning:
    """Add people and labels to the pull requests of one repository."""

    def __init__(self, client: HostClient, path: str, *, owner: str, labels: GiteaLabels) -> None:
        self._client = client
        self._path = path
        self._owner = owner
        self._labels = labels

    async def assign(self, number: int, wanted: Assignments) -> list[Unassigned]:
        """Add the missing names; return the names that the host does not accept."""
        found = _Assigned(self._client, self._path, number, self._labels)
        await found.refresh()
        return await assign(found, wanted, owner=self._owner)


class _Assigned:
    """One pull request as `Assigned`."""

    no_team = f"{NO_ACCESS}, and only organisations have teams"
    no_assignee = NO_ACCESS

    def __init__(self, client: HostClient, path: str, number: int, labels: GiteaLabels) -> None:
        self._client = client
        self._path = path
        self._number = number
        self._labels = labels
        self._found = ApiAssigned()

    async def refresh(self) -> None:
        """Read the pull request."""
        answer = await self._client.request("get", "GET", f"{self._path}/pulls/{self._number}", age=self._age)
        self._found = parsed(ApiAssigned, answer.value)

    @property
    def author(self) -> str:
        """Return the user who opened the pull request."""
        return self._found.user.login.casefold() if self._found.user else ""

    @property
    def reviewers(self) -> frozenset[str]:
        """Return the users whose review is requested."""
        return _logins(self._found.requested_reviewers)

    @property
    def teams(self) -> frozenset[str]:
        """Return the teams whose review is requested."""
        return folded(team.name for team in self._found.requested_reviewers_teams or ())

    @property
    def assignees(self) -> frozenset[str]:
        """Return the users who are assigned."""
        return _logins(self._found.assignees)

    @property
    def labels(self) -> frozenset[str]:
        """Return the labels."""
        return folded(label.name for label in self._found.labels or ())

    async def reviewed(self) -> frozenset[str]:
        """Return who has reviewed already: a new request would make their approval count as outdated."""
        path = f"{self._path}/pulls/{self._number}/reviews"
        pages = self._client.pages("approvals", path, query={"limit": _PAGE}, age=self._age)
        reviews = [parsed(ApiReview, item) async for item in pages]
        return folded(review.user.login for review in reviews if review.user)

    async def assignable(self) -> frozenset[str]:
        """Return the possible assignees: for any other user the host answers 500."""
        answer = await self._client.request("assignable", "GET", f"{self._path}/assignees")
        return _logins(parsed(ApiUsers, answer.value).root)

    async def add_reviewers(self, names: Sequence[str]) -> Collection[str]:
        """Request reviews of users."""
        await self._request_reviews({"reviewers": names})
        return self.reviewers

    async def add_teams(self, names: Sequence[str]) -> Collection[str] | None:
        """Request reviews of teams, which an older host does not report."""
        await self._request_reviews({"team_reviewers": names})
        return None if self._found.requested_reviewers_teams is None else self.teams

    async def add_assignees(self, names: Sequence[str]) -> Collection[str]:
        """Assign users besides those who are assigned: the list replaces the previous one."""
        path = f"{self._path}/pulls/{self._number}"
        body = {"assignees": [*(user.login for user in self._found.assignees or ()), *names]}
        answer = await self._client.request("assignees", "PATCH", path, body=body, age=self._age)
        self._found = parsed(ApiAssigned, answer.value)
        return self.assignees

    async def add_labels(self, names: Sequence[str]) -> None:
        """Add labels, all of which the host accepts."""
        await self._labels.add(self._number, names)

    async def _request_reviews(self, body: object) -> None:
        path = f"{self._path}/pulls/{self._number}/requested_reviewers"
        await self._client.request("reviewers", "POST", path, body=body)
        await self.refresh()

    @property
    def _age(self) -> float:
        return self._client.age(f"{self._path} {self._number}")


def _logins(users: Sequence[ApiUser] | None) -> frozenset[str]:
    return folded(user.login for user in users or ())
