"""Add people and labels to a pull request such that a name that the host refuses does not prevent the others.

`assign` is the workflow for hosts that add reviewers, teams, assignees and labels in requests of their own; each
implements `Assigned` for one pull request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Protocol

from kardinal.objects.capabilities import PullRequestField
from kardinal.objects.errors import KardinalError
from kardinal.scm.base import Assignments, Unassigned
from kardinal.scm.errors import AccessDenied, HostError, UnknownAnswer

__all__ = ["NO_ACCESS", "Assigned", "add", "assign", "folded", "unassigned"]

NO_ACCESS = "the host does not take it: only who has access to the repository can be added"

Add = Callable[[Sequence[str]], Awaitable[Collection[str] | None]]
"""Adds names; returns the names that the pull request then has, in lower case, or None if the host does not say."""


class Assigned(Protocol):
    """The people and labels of one pull request, in lower case, and the calls that add to them.

    A call that adds names returns as `Add` does.
    """

    no_team: str
    """The reason for a team that the host silently leaves out."""
    no_assignee: str
    """The reason for an assignee that the host silently leaves out."""

    @property
    def author(self) -> str:
        """Return the user who opened the pull request, whom no host takes as a reviewer; empty if it is not known."""
        ...

    @property
    def reviewers(self) -> frozenset[str]: ...

    @property
    def teams(self) -> frozenset[str]: ...

    @property
    def assignees(self) -> frozenset[str]: ...

    @property
    def labels(self) -> frozenset[str]: ...

    async def reviewed(self) -> frozenset[str]:
        """Return the users who have reviewed already: to ask them again would take back their review."""
        ...

    async def assignable(self) -> frozenset[str] | None:
        """Return the users who can be assigned, if the host has to be asked for them before."""
        ...

    async def add_reviewers(self, names: Sequence[str]) -> Collection[str] | None: ...

    async def add_teams(self, names: Sequence[str]) -> Collection[str] | None: ...

    async def add_assignees(self, names: Sequence[str]) -> Collection[str] | None: ...

    async def add_labels(self, names: Sequence[str]) -> Collection[str] | None: ...


async def assign(found: Assigned, wanted: Assignments, *, owner: str) -> list[Unassigned]:
    """Add the missing names to a pull request in a repository of `owner`; return the names that the host refuses."""
    own = [name for name in wanted.reviewers if name.casefold() == found.author]
    others = [name for name in wanted.reviewers if name.casefold() != found.author]
    asked = found.reviewers | (await found.reviewed() if folded(others) - found.reviewers else frozenset())
    slugs, foreign = _teams_of(owner, wanted.team_reviewers)
    return [
        *unassigned("reviewers", own, "the author of a pull request cannot review it"),
        *await add("reviewers", others, found.add_reviewers, there=asked, otherwise=NO_ACCESS),
        *foreign,
        *await add("teamReviewers", slugs, found.add_teams, there=found.teams, otherwise=found.no_team),
        *await _add_assignees(found, wanted.assignees),
        *await add("labels", wanted.labels, found.add_labels, there=found.labels, otherwise=NO_ACCESS),
    ]


async def _add_assignees(found: Assigned, names: Sequence[str]) -> list[Unassigned]:
    assignable = await found.assignable() if folded(names) - found.assignees else None
    able = [name for name in names if assignable is None or name.casefold() in assignable]
    return [
        *unassigned("assignees", (name for name in names if name not in able), NO_ACCESS),
        *await add("assignees", able, found.add_assignees, there=found.assignees, otherwise=found.no_assignee),
    ]


def folded(names: Iterable[str]) -> frozenset[str]:
    """Return names in the form in which hosts compare them: `Alice` and `alice` are the same user."""
    return frozenset(name.casefold() for name in names)


def unassigned(field: PullRequestField, names: Iterable[str], reason: str) -> list[Unassigned]:
    """Return entries for names that are not added, all for the same reason."""
    return [Unassigned(field, name, reason) for name in names]


def _teams_of(owner: str, names: Iterable[str]) -> tuple[list[str], list[Unassigned]]:
    """Return the slugs of the teams of `owner`, and entries for teams of other organisations.

    A host would take a slug of another organisation as a team of `owner`.
    """
    slugs = list[str]()
    foreign = list[str]()
    for name in names:
        organisation, _, slug = name.rpartition("/")
        if organisation.casefold() in ("", owner.casefold()):
            slugs.append(slug)
        else:
            foreign.append(name)
    return slugs, unassigned("teamReviewers", foreign, f"only teams of {owner} can be asked here")


async def add(
    field: PullRequestField, names: Sequence[str], adding: Add, *, there: Collection[str] = (), otherwise: str
) -> list[Unassigned]:
    """Add the names that are not `there` in one request, or one by one if the host refuses the request.

    Returns the names that are not added; `otherwise` is the reason for names that a host silently leaves out. Raises
    errors that another attempt may avoid, and the error of an invalid credential.
    """
    missing = [name for name in names if name.casefold() not in there]
    if not missing:
        return []
    try:
        has = await adding(missing)
    except KardinalError as error:
        if not _is_refusal(error):
            raise
        if len(missing) == 1 or isinstance(error, AccessDenied):
            return unassigned(field, missing, str(error))
        found = list[Unassigned]()
        for name in missing:
            found += await add(field, [name], adding, otherwise=otherwise)
        return found
    return unassigned(field, (name for name in missing if has is not None and name.casefold() not in has), otherwise)


def _is_refusal(error: KardinalError) -> bool:
    """Return whether the host has refused the request; a missing permission counts as a refusal, too."""
    if isinstance(error, AccessDenied):
        return error.status != 401
    return isinstance(error, UnknownAnswer) or (isinstance(error, HostError) and not error.transient)
