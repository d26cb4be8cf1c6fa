"""Provider `gitlab` in the contract suite: a fake GitLab over a real repository, merging in either way."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kardinal.clock import Clock, SystemClock
from kardinal.scm import PROVIDERS, MergeMethod, RepositoryHost
from kardinal.scm.http import HostSessions
from tests.hosts.fakes.gitlab import PATH, TOKEN, FakeGitLab
from tests.hosts.fakes.gitlab_state import Note
from tests.hosts.host import HEAD, PERSON, Host
from tests.support.smart_server import self_signed


class GitLabHost(Host):
    provider = PROVIDERS["gitlab"]
    reviews_name_commits = False

    @property
    def merge_methods(self) -> frozenset[MergeMethod]:
        return frozenset({"merge", "squash"})

    def __init__(self, directory: Path, *, clock: Clock | None = None) -> None:
        repository = directory / "served" / f"{PATH}.git"
        repository.parent.mkdir(parents=True)
        super().__init__(repository)
        self.clock = clock or SystemClock()
        self.server = FakeGitLab(directory / "served", self_signed(directory), now=self.clock.now)
        self.server.start()
        self.project = self.server.project
        self.url = f"{self.server.url}/{PATH}.git"
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

    def landed(self, method: MergeMethod) -> str:
        """Return the squashed commit, which GitLab merges with a merge commit."""
        return self.git("rev-parse", "main^2") if method == "squash" else self.tip("main")

    def delete_branch(self, branch: str) -> None:
        self.git("branch", "-D", branch)

    async def merge(self, number: int, method: MergeMethod | None) -> None:
        self.project.merge(number, squash=method == "squash", by=PERSON)

    async def close_by_person(self, number: int) -> None:
        request = self.project.requests[number]
        request.state = "closed"
        request.closed_by = PERSON

    async def make_draft(self, number: int) -> None:
        request = self.project.requests[number]
        request.title = f"Draft: {request.title}"

    async def comments(self, number: int) -> list[str]:
        return [note.body for note in self.project.requests[number].notes if not note.system]

    async def assigned(self, number: int) -> dict[str, list[str]]:
        request = self.project.requests[number]
        names = {identifier: name for name, identifier in self.project.users.items()}
        return {
            "reviewers": [names[one] for one in request.reviewers],
            "assignees": [names[one] for one in request.assignees],
            "labels": request.labels,
        }

    async def told(self, number: int) -> int:
        return len(self.project.requests[number].told)

    def propose_from_fork(self, files: Mapping[str, str], *, head: str = HEAD) -> tuple[int, str]:
        commit = self.project.git.commit("of-a-fork", files, start="main")
        self.project.git.delete("of-a-fork")
        number = self.project.open(source=head, target="main", title="Mine", description="", by="mallory", fork=99)
        self.project.requests[number].sha = commit
        return number, commit

    def comment_by_person(self, number: int, text: str) -> None:
        note = Note(self.project.next_identifier(), PERSON, text, self.clock.now())
        self.project.requests[number].notes.append(note)

    def label_by_person(self, number: int, name: str) -> None:
        self.project.requests[number].labels.append(name)

    def review(self, number: int, who: str, verdict: str) -> None:
        if verdict == "approve" and who != "carol":  # who only reads is not offered to approve
            self.project.approve(number, who)
        elif verdict == "reject":
            self.project.requests[number].approved_by.pop(who, None)

    def require_status(self, branch: str, context: str) -> None:
        self.project.required_statuses.add(context)

    def revoke_token(self) -> None:
        self.server.tokens.clear()


class FastForwardGitLabHost(GitLabHost):
    """A project whose history is a line."""

    @property
    def merge_methods(self) -> frozenset[MergeMethod]:
        return frozenset({"rebase", "squash"})

    def __init__(self, directory: Path, *, clock: Clock | None = None) -> None:
        super().__init__(directory, clock=clock)
        self.project.merge_method = "ff"

    def landed(self, method: MergeMethod) -> str:
        return self.tip("main")

    async def merge(self, number: int, method: MergeMethod | None) -> None:
        if self.project.status(self.project.requests[number]) == "need_rebase":
            self.project.rebase(number)
        await super().merge(number, method)
