"""Provider `github` in the contract suite: a fake GitHub Enterprise over a real repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from hack.hosts.descriptions import COMMAND, locate
from kardinal.clock import Clock, SystemClock
from kardinal.scm import PROVIDERS, MergeMethod, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.hosts.fakes.github import TOKEN, FakeGitHub
from tests.hosts.fakes.github_state import Comment
from tests.hosts.host import HEAD, PERSON, Host
from tests.support.smart_server import self_signed

_VERDICTS = {"approve": "APPROVED", "reject": "CHANGES_REQUESTED", "comment": "COMMENTED"}


class GitHubHost(Host):
    provider = PROVIDERS["github"]

    def __init__(self, directory: Path, descriptions: Path, *, clock: Clock | None = None) -> None:
        repository = directory / "served" / "acme" / "config.git"
        repository.parent.mkdir(parents=True)
        super().__init__(repository)
        self.clock = clock or SystemClock()
        self.server = FakeGitHub(directory / "served", self_signed(directory), descriptions, now=self.clock.now)
        self.server.start()
        self.project = self.server.project
        self.project.collaborators = {"carol": "read"}
        self.url = f"{self.server.url}/acme/config.git"
        self.values = {"token": TOKEN}

    async def close(self) -> None:
        await super().close()
        self.server.stop()
        assert not self.server.problems, "\n".join(self.server.problems)

    def target(self, sessions: HostSessions) -> RepositoryHost:
        return RepositoryHost(url=self.url, clock=self.clock, sessions=sessions, authority=self.server.authority)

    def secret(self) -> dict[str, str]:
        return self.values

    def fetch(self) -> None:
        """Do nothing: `git` works on the repository itself."""

    def publish(self, branch: str) -> None:
        """Do nothing: `git` works on the repository itself."""

    def delete_branch(self, branch: str) -> None:
        self.git("branch", "-D", branch)

    async def merge(self, number: int, method: MergeMethod | None) -> None:
        self.project.merge(number, method or "merge", by=PERSON)

    async def close_by_person(self, number: int) -> None:
        pull = self.project.pulls[number]
        pull.state = "closed"
        pull.closed_by = PERSON

    async def make_draft(self, number: int) -> None:
        self.project.pulls[number].draft = True

    async def comments(self, number: int) -> list[str]:
        return [comment.body for comment in self.project.pulls[number].comments]

    async def assigned(self, number: int) -> dict[str, list[str]]:
        pull = self.project.pulls[number]
        return {
            "reviewers": pull.requested_reviewers,
            "teamReviewers": pull.requested_teams,
            "assignees": pull.assignees,
            "labels": pull.labels,
        }

    async def told(self, number: int) -> int:
        return len(self.project.pulls[number].told)

    def propose_from_fork(self, files: Mapping[str, str], *, head: str = HEAD) -> tuple[int, str]:
        commit = self.project.git.commit("of-a-fork", files, start="main")
        self.project.git.delete("of-a-fork")
        made = self.project.open(head=head, base="main", title="Mine", by="mallory", fork="mallory/config")
        made.head_sha = commit
        return made.number, commit

    def comment_by_person(self, number: int, text: str) -> None:
        self.project.pulls[number].comments.append(Comment(self.project.identifier(), PERSON, text))

    def label_by_person(self, number: int, name: str) -> None:
        self.project.pulls[number].labels.append(name)

    def review(self, number: int, who: str, verdict: str) -> None:
        self.project.review(number, who, _VERDICTS[verdict])

    def require_status(self, branch: str, context: str) -> None:
        self.project.required_contexts[branch] = {context}

    def revoke_token(self) -> None:
        del self.server.identities[self.values["token"]]


@pytest.fixture(scope="session")
def descriptions() -> Path:
    """Return the published descriptions of GitHub's APIs."""
    found = locate()
    if found is None:
        pytest.skip(f"GitHub's published descriptions are not here; fetch them: {COMMAND}")
    return found
