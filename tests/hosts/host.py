"""A host of pull requests as the contract suite sees it: kardinal's view, and that of people.

One class for each provider. People act by the host's own means (its API, `git push`), never by kardinal's client, so
that a mistake of the client is not on both sides.
"""

from __future__ import annotations

import asyncio
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import cast

from kardinal.clock import Clock, SystemClock
from kardinal.objects.errors import KardinalError
from kardinal.scm import BehindBase, HeadMoved, MergeMethod, NewPullRequest, Provider, PullRequests, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.git.conftest import Git, manifests
from tests.support.repository import GitRepository

__all__ = ["HEAD", "Host", "new_pull_request", "patient"]

HEAD = "kardinal/app-1/prod"
FILE = "environments/prod/kustomization.yaml"
PERSON = "alice"


def new_pull_request(head: str = HEAD, *, base: str = "main", labels: Sequence[str] = ("kardinal",)) -> NewPullRequest:
    return NewPullRequest(
        title="Promote app 1.2.0 to prod", body="| a | table |", head=head, base=base, labels=tuple(labels)
    )


PATIENCE = 20.0


class _Patient:
    """Repeats what a promotion would repeat: a request whose error says that another attempt may succeed.

    What is behind its base is brought up to date.
    """

    def __init__(self, pulls: PullRequests) -> None:
        self._pulls = pulls

    def __getattr__(self, name: str) -> Callable[..., Awaitable[object]]:
        async def repeated(*args: object, **kwargs: object) -> object:
            async with asyncio.timeout(PATIENCE):
                while True:
                    try:
                        return await getattr(self._pulls, name)(*args, **kwargs)
                    except BehindBase:
                        await self._pulls.bring_up_to_date(int(str(args[0])))
                    except KardinalError as error:
                        if not error.transient or error.blocked or isinstance(error, HeadMoved):
                            raise
                        await asyncio.sleep(0.1)

        return repeated


def patient(pulls: PullRequests) -> PullRequests:
    """Return pull requests whose transient errors are tried again, as the agent does."""
    return cast(PullRequests, _Patient(pulls))


class Host(ABC):
    """One repository at a host, with branch `main`."""

    provider: Provider
    url: str
    reviews_name_commits: bool = True
    """Whether the host says of which commit a review is."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(directory)], check=True)
        self.git = Git(directory)
        self.requests: list[tuple[str, str]] = []
        """(operation, status) of kardinal's requests, in order."""
        self._stack = AsyncExitStack()

    async def close(self) -> None:
        await self._stack.aclose()

    async def connect(self, *, clock: Clock | None = None) -> PullRequests:
        """Return the pull requests as kardinal's user sees them, in a program of their own."""
        sessions = await self._stack.enter_async_context(HostSessions(clock=clock or SystemClock()))
        target = replace(self.target(sessions), on_request=lambda *request: self.requests.append(request))
        values = self.secret()
        target = replace(target, authenticator=self.provider.authenticate(values, target) if values else None)
        assert self.provider.connect is not None
        return self.provider.connect(target)

    @abstractmethod
    def target(self, sessions: HostSessions) -> RepositoryHost: ...

    def secret(self) -> dict[str, str]:
        """Return the values of kardinal's Secret."""
        return {}

    def start(self) -> None:
        """Give the repository its first commit."""
        self.git.commit(manifests())
        self.publish("main")

    def propose(self, head: str = HEAD, *, content: str = "v2\n", base: str = "main", path: str = FILE) -> str:
        """Make a branch with one commit on top of `base`, in the place of what it was, and return the commit."""
        self.fetch()
        self.git("branch", "--force", head, base)
        return self._commit(head, path, content)

    def add_commit(self, branch: str, path: str, content: str) -> str:
        """Add a commit that writes one file, as a person would, and return it."""
        self.fetch()
        return self._commit(branch, path, content)

    def _commit(self, branch: str, path: str, content: str) -> str:
        commit = GitRepository(self.git.directory).commit({path: content}, branch=branch)
        self.publish(branch)
        return commit

    def tip(self, branch: str) -> str:
        self.fetch()
        return self.git("rev-parse", branch)

    def content(self, revision: str, path: str = FILE) -> str:
        self.fetch()
        return self.git("show", f"{revision}:{path}")

    @property
    def merge_methods(self) -> frozenset[MergeMethod]:
        """Return the methods that the settings of the repository allow."""
        return self.provider.capabilities.merge_methods

    def landed(self, method: MergeMethod) -> str:
        """Return the commit with which the last merge landed on `main`, as the host is to name it."""
        return self.tip("main")

    @abstractmethod
    def fetch(self) -> None:
        """Bring the branches of the host into `git`."""

    @abstractmethod
    def publish(self, branch: str) -> None:
        """Bring a branch of `git` to the host."""

    @abstractmethod
    def delete_branch(self, branch: str) -> None: ...

    @abstractmethod
    async def merge(self, number: int, method: MergeMethod | None) -> None:
        """Merge as `PERSON`, on the host's page."""

    @abstractmethod
    async def close_by_person(self, number: int) -> None: ...

    @abstractmethod
    async def make_draft(self, number: int) -> None:
        """Say as a person that a pull request is not to be merged, by the host's own means."""

    @abstractmethod
    async def comments(self, number: int) -> list[str]:
        """Return the text of every comment."""

    def propose_from_fork(self, files: Mapping[str, str], *, head: str = HEAD) -> tuple[int, str]:
        """Open a pull request from the fork of a stranger; return its number and its commit."""
        raise NotImplementedError

    def login(self, who: str) -> str:
        """Return the name of a person at the host."""
        return who

    def make_team(self, name: str) -> str:
        """Give a team access to the repository; return it with its organisation."""
        return f"acme/{name}"

    def make_stranger(self) -> str:
        """Return the name of a user without access to the repository."""
        return "mallory"

    @abstractmethod
    async def assigned(self, number: int) -> dict[str, list[str]]:
        """Return who is asked for a review and assigned, and the labels, in the words of `git.pullRequest`."""

    @abstractmethod
    async def told(self, number: int) -> int:
        """Return how often the host has told that people or labels were added."""

    def comment_by_person(self, number: int, text: str) -> None:
        raise NotImplementedError

    def label_by_person(self, number: int, name: str) -> None:
        raise NotImplementedError

    def review(self, number: int, who: str, verdict: str) -> None:
        """Review as a person: `approve`, `reject` or `comment`."""
        raise NotImplementedError

    def require_status(self, branch: str, context: str) -> None:
        """Protect a branch: nothing is merged without this status."""
        raise NotImplementedError

    def revoke_token(self) -> None:
        """Take kardinal's token back."""
        raise NotImplementedError
