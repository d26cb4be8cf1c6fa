"""The places where the repository of a life is, and its reviewers, who share nothing with the programs under test."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from kardinal.kube import Client
from kardinal.objects import SECRET, JsonObject
from kardinal.scm import PullRequests
from tests.agent.hosted import git_secret
from tests.support.fake_gitea import FakeGitea
from tests.support.repository import GitRepository

__all__ = ["GiteaPlace", "LocalPlace", "Place", "Proposal"]

_ATTEMPTS = 10


@dataclass(frozen=True)
class Proposal:
    """A pull request as its host has it in the end."""

    head: str
    state: str
    comments: int


class Place(ABC):
    """A repository with pull requests."""

    provider: str
    tells: bool
    """Whether programs are told of a merge by the repository itself."""

    def __init__(self, repository: GitRepository) -> None:
        self.repository = repository

    @property
    @abstractmethod
    def git(self) -> JsonObject:
        """Return `git` of a Pipeline."""

    @abstractmethod
    async def prepare(self, client: Client, namespace: str) -> None:
        """Make what the programs need to work there."""

    @abstractmethod
    async def merge(self, number: int) -> None:
        """Merge as a reviewer."""

    @abstractmethod
    async def close(self, number: int) -> None:
        """Close as a reviewer, without a comment."""

    @abstractmethod
    async def proposals(self) -> Sequence[Proposal]:
        """Return every pull request, by number."""


class LocalPlace(Place):
    """A bare repository with provider `local`."""

    tells = True

    def __init__(self, repository: GitRepository, reviewer: PullRequests) -> None:
        super().__init__(repository)
        self._reviewer = reviewer

    @property
    def git(self) -> JsonObject:
        return {"url": self.repository.url, "provider": "local"}

    async def prepare(self, client: Client, namespace: str) -> None:
        """Make nothing."""

    async def merge(self, number: int) -> None:
        await self._reviewer.merge(number, by="alice")

    async def close(self, number: int) -> None:
        await self._reviewer.close(number, by="bob", comment="")

    async def proposals(self) -> Sequence[Proposal]:
        return [Proposal(each.head, each.state, len(each.comments)) for each in await self._reviewer.list()]


class GiteaPlace(Place):
    """A repository at a host with the API of Gitea, over HTTP."""

    tells = False

    def __init__(self, fake: FakeGitea) -> None:
        super().__init__(fake.repository)
        self._fake = fake

    @property
    def git(self) -> JsonObject:
        return {"url": self._fake.url, "provider": "gitea", "secretRef": {"name": "git"}}

    async def prepare(self, client: Client, namespace: str) -> None:
        secret = git_secret(self._fake)
        secret["metadata"]["namespace"] = namespace
        await client.create(SECRET, secret)

    async def merge(self, number: int) -> None:
        """Merge, again where another push to the branch was faster, as a person does."""
        for _ in range(_ATTEMPTS):
            with suppress(AssertionError):
                await asyncio.to_thread(self._fake.merge, number)
                return
        raise AssertionError(f"pull request {number} could not be merged")

    async def close(self, number: int) -> None:
        self._fake.close(number)

    async def proposals(self) -> Sequence[Proposal]:
        return [
            Proposal(each.head, "merged" if each.merged_at else each.state, len(each.comments))
            for each in self._fake.pulls.values()
        ]
