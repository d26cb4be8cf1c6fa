"""The hosts that promotions run at: one repository each, with one view of it for what people and tests do there.

Each has the same credential, so that a test says nothing of the host it runs on. What a host answers is that of its
fake; `tests/hosts` says how far a fake is the host.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest

from kardinal.scm import MergeMethod
from tests.hosts.fakes.github import FakeGitHub
from tests.hosts.fakes.gitlab import PATH, FakeGitLab
from tests.hosts.fakes.server import HostServer
from tests.support.fake_gitea import FakeGitea, fake_gitea
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD

__all__ = [
    "EVERYWHERE",
    "PERSON",
    "GitHubSite",
    "GitLabSite",
    "GiteaSite",
    "Operation",
    "Proposal",
    "Site",
    "serving_site",
]

PERSON = "alice"

Operation = Literal[
    "find", "compare", "open", "labels", "get", "text", "status", "statuses", "merge", "update", "list", "approvals"
]
State = Literal["open", "merged", "closed"]

EVERYWHERE = pytest.mark.parametrize(
    "site",
    ["gitea", *(pytest.param(name, marks=pytest.mark.every_host) for name in ("github", "gitlab"))],
    indirect=True,
)
"""Runs a test at every kind of host: for what their APIs have a part in."""

_NOT_CHECKED = 405, {"message": "Not all required status checks successful"}
_WRITES = "(POST|PUT|PATCH|DELETE) .*"


@dataclass(frozen=True)
class Proposal:
    """A pull request as its page shows it."""

    title: str
    body: str
    head: str
    base: str
    state: State
    labels: Sequence[str]
    comments: Sequence[str]


class Site(ABC):
    """One repository at a host."""

    provider: str
    methods: frozenset[MergeMethod] = frozenset({"merge", "squash", "rebase"})
    """The methods by which a person may merge there."""
    requests: Mapping[Operation, str]
    """Operation of kardinal -> a pattern of the requests that are made for it, as `METHOD path?query`."""
    draft_prefix = ""

    def __init__(self, repository: GitRepository) -> None:
        self.repository = repository

    @property
    @abstractmethod
    def url(self) -> str:
        """The address of the repository."""

    @property
    def host(self) -> str:
        """Return `host:port`."""
        return self.url.removeprefix("https://").partition("/")[0]

    def asked(self, operation: Operation) -> list[str]:
        """Return the requests so far that were made for an operation."""
        return [line for line in self.lines() if re.fullmatch(self.requests[operation], line)]

    def written(self) -> list[str]:
        """Return the requests so far that may have changed something."""
        return [line for line in self.lines() if re.fullmatch(_WRITES, line)]

    @abstractmethod
    def lines(self) -> list[str]:
        """Return the requests of the API so far, in order; paths are those below the repository."""

    @abstractmethod
    def git_requests(self) -> list[str]:
        """Return the requests of Git so far, in order."""

    @abstractmethod
    def forget(self) -> None:
        """Count requests from now on."""

    @abstractmethod
    def proposals(self) -> Mapping[int, Proposal]:
        """Return every pull request."""

    @abstractmethod
    def merge(self, number: int, method: MergeMethod = "merge") -> str:
        """Merge as `PERSON`; return the commit with which it landed, as the host is to name it."""

    @abstractmethod
    def close(self, number: int) -> None:
        """Close as `PERSON`, without merging."""

    @abstractmethod
    def require_up_to_date(self) -> None:
        """Merge no pull request into `main` from now on that lacks commits of it."""

    @abstractmethod
    def update_branch(self, number: int) -> None:
        """Bring a pull request up to date as a person does on its page."""

    @abstractmethod
    def retarget(self, number: int, base: str) -> None:
        """Have a pull request merged into another branch."""

    @abstractmethod
    def edit(self, number: int, body: str) -> None:
        """Write the text of a pull request."""

    @abstractmethod
    def retitle(self, number: int, title: str) -> None:
        """Write the title of a pull request."""

    @abstractmethod
    def require_check(self, *, required: bool = True) -> None:
        """Have the branch `main` require a check that has not run."""

    def make_draft(self, number: int) -> None:
        """Make a pull request a draft as a reviewer does: at most hosts that is a prefix of its title."""
        self.retitle(number, f"{self.draft_prefix}{self.proposals()[number].title}")

    def make_ready(self, number: int) -> None:
        """Take back that a pull request is a draft."""
        self.retitle(number, self.proposals()[number].title.removeprefix(self.draft_prefix))

    @abstractmethod
    def people(self, number: int) -> list[list[str]]:
        """Return who is asked for a review, which teams are, and who is assigned."""

    @abstractmethod
    def take_off(self, number: int, *, label: str) -> None:
        """Take every person and team off a pull request, and a label, as a person does."""

    @abstractmethod
    def status(self, number: int, context: str) -> tuple[str, str]:
        """Return state and description of a status of the head of a pull request."""


class GiteaSite(Site):
    provider = "gitea"
    draft_prefix = "WIP: "
    requests: Mapping[Operation, str] = {
        "find": r"GET /pulls/main/.*",
        "open": r"POST /pulls",
        "labels": r"(GET|POST) /labels.*",
        "get": r"GET /pulls/\d+",
        "text": r"PATCH /pulls/\d+",
        "status": r"POST /statuses/.*",
        "statuses": r"GET /commits/.*/status",
        "merge": r"POST /pulls/\d+/merge",
        "update": r"POST /pulls/\d+/update",
        "approvals": r"GET /pulls/\d+/reviews",
        "list": r"GET /pulls",
    }

    def __init__(self, fake: FakeGitea) -> None:
        super().__init__(fake.repository)
        self.fake = fake

    @property
    def url(self) -> str:
        return self.fake.url

    def lines(self) -> list[str]:
        return [f"{one.method} {one.path}" for one in self.fake.requests]

    def git_requests(self) -> list[str]:
        return [line for line in self.fake.server.requests if "/api/" not in line]

    def forget(self) -> None:
        self.fake.requests.clear()
        self.fake.server.requests.clear()

    def proposals(self) -> Mapping[int, Proposal]:
        return {number: self._proposal(number) for number in self.fake.pulls}

    def _proposal(self, number: int) -> Proposal:
        pull = self.fake.pulls[number]
        state: State = "merged" if pull.merged_at else "open" if pull.state == "open" else "closed"
        labels = [self.fake.labels[one - 1] for one in pull.labels]
        return Proposal(pull.title, pull.body, pull.head, pull.base, state, labels, list(pull.comments))

    def merge(self, number: int, method: MergeMethod = "merge") -> str:
        return self.fake.merge(number, by=PERSON, method=method)

    def close(self, number: int) -> None:
        self.fake.close(number, by=PERSON)

    def require_up_to_date(self) -> None:
        self.fake.blocks_outdated = True

    def update_branch(self, number: int) -> None:
        self.fake.update_branch(number, by=PERSON)

    def retarget(self, number: int, base: str) -> None:
        self.fake.retarget(number, base)

    def edit(self, number: int, body: str) -> None:
        self.fake.pulls[number].body = body

    def retitle(self, number: int, title: str) -> None:
        self.fake.pulls[number].title = title

    def people(self, number: int) -> list[list[str]]:
        pull = self.fake.pulls[number]
        return [pull.reviewers, pull.teams, pull.assignees]

    def take_off(self, number: int, *, label: str) -> None:
        pull = self.fake.pulls[number]
        pull.reviewers = []
        pull.teams = []
        pull.assignees = []
        pull.labels.remove(self.fake.labels.index(label) + 1)

    def require_check(self, *, required: bool = True) -> None:
        self.fake.outage = lambda request: _NOT_CHECKED if required and request.path.endswith("/merge") else None

    def status(self, number: int, context: str) -> tuple[str, str]:
        return self.fake.status(number, context)


class _ServedSite(Site):
    """A site of a fake host that is a server of its own."""

    base: str
    """The path of the repository in the API."""
    server: HostServer

    def lines(self) -> list[str]:
        return [
            f"{one.method} {one.path.removeprefix(self.base)}"
            + ("?" + "&".join(f"{name}={value}" for name, value in one.query.items()) if one.query else "")
            for one in self.server.exchanges
        ]

    def git_requests(self) -> list[str]:
        return list(self.server.git_requests)

    def forget(self) -> None:
        self.server.exchanges.clear()
        self.server.git_requests.clear()


class GitHubSite(_ServedSite):
    provider = "github"
    base = "/api/v3/repos/acme/config"
    requests: Mapping[Operation, str] = {
        "find": r"GET /pulls\?head=.*",
        "open": r"POST /pulls",
        "labels": r"POST /issues/\d+/labels",
        "get": r"GET /pulls/\d+",
        "text": r"PATCH /pulls/\d+",
        "status": r"POST /statuses/.*",
        "statuses": r"GET /commits/.*/status\?.*",
        "merge": r"PUT /pulls/\d+/merge",
        "update": r"PUT /pulls/\d+/update-branch",
        "approvals": r"GET /pulls/\d+/reviews.*",
        "list": r"GET /pulls\?state=.*",
    }

    def __init__(self, repository: GitRepository, server: FakeGitHub) -> None:
        super().__init__(repository)
        self.server: FakeGitHub = server
        self.project = server.project
        server.grant(PASSWORD, "kardinal-robot")

    @property
    def url(self) -> str:
        return f"{self.server.url}/acme/config.git"

    def proposals(self) -> Mapping[int, Proposal]:
        return {number: self._proposal(number) for number in self.project.pulls}

    def _proposal(self, number: int) -> Proposal:
        pull = self.project.pulls[number]
        self.project.follow(pull)
        state: State = "merged" if pull.merged_at else "open" if pull.state == "open" else "closed"
        comments = [comment.body for comment in pull.comments]
        return Proposal(pull.title, pull.body, pull.head, pull.base, state, list(pull.labels), comments)

    def merge(self, number: int, method: MergeMethod = "merge") -> str:
        return self.project.merge(number, method, by=PERSON).merge_commit_sha or ""

    def close(self, number: int) -> None:
        pull = self.project.pulls[number]
        pull.state = "closed"
        pull.closed_by = PERSON

    def require_up_to_date(self) -> None:
        self.project.strict.add("main")

    def update_branch(self, number: int) -> None:
        self.project.update_branch(number)

    def retarget(self, number: int, base: str) -> None:
        self.project.pulls[number].base = base

    def edit(self, number: int, body: str) -> None:
        self.project.pulls[number].body = body

    def retitle(self, number: int, title: str) -> None:
        self.project.pulls[number].title = title

    def make_draft(self, number: int) -> None:
        self.project.pulls[number].draft = True

    def make_ready(self, number: int) -> None:
        self.project.pulls[number].draft = False

    def people(self, number: int) -> list[list[str]]:
        pull = self.project.pulls[number]
        return [pull.requested_reviewers, pull.requested_teams, pull.assignees]

    def take_off(self, number: int, *, label: str) -> None:
        pull = self.project.pulls[number]
        pull.requested_reviewers = []
        pull.requested_teams = []
        pull.assignees = []
        pull.labels.remove(label)

    def require_check(self, *, required: bool = True) -> None:
        self.project.required_contexts["main"] = {"ci"} if required else set()

    def status(self, number: int, context: str) -> tuple[str, str]:
        pull = self.project.pulls[number]
        self.project.follow(pull)
        found = [one for one in self.project.statuses.get(pull.head_sha, []) if one.context == context]
        return (found[-1].state, found[-1].description) if found else ("", "")


class GitLabSite(_ServedSite):
    provider = "gitlab"
    methods: frozenset[MergeMethod] = frozenset({"merge", "squash"})
    draft_prefix = "Draft: "
    base = f"/api/v4/projects/{PATH}"
    requests: Mapping[Operation, str] = {
        "find": r"GET /merge_requests\?source_branch=.*",
        "open": r"POST /merge_requests",
        "compare": r"GET /repository/compare\?.*",
        "get": r"GET /merge_requests/\d+",
        "text": r"PUT /merge_requests/\d+",
        "status": r"POST /statuses/.*",
        "statuses": r"GET /repository/commits/.*/statuses\?.*",
        "merge": r"PUT /merge_requests/\d+/merge",
        "update": r"PUT /merge_requests/\d+/rebase",
        "approvals": r"GET /merge_requests/\d+/approvals",
        "list": r"GET /merge_requests\?state=.*",
    }

    def __init__(self, repository: GitRepository, server: FakeGitLab) -> None:
        super().__init__(repository)
        self.server: FakeGitLab = server
        self.project = server.project
        server.tokens[PASSWORD] = "project_7_bot"

    @property
    def url(self) -> str:
        return f"{self.server.url}/{PATH}.git"

    def proposals(self) -> Mapping[int, Proposal]:
        return {number: self._proposal(number) for number in self.project.requests}

    def _proposal(self, number: int) -> Proposal:
        found = self.project.requests[number]
        states: Mapping[str, State] = {"opened": "open", "merged": "merged"}
        comments = [note.body for note in found.notes if not note.system]
        return Proposal(
            found.title,
            found.description,
            found.source,
            found.target,
            states.get(found.state, "closed"),
            list(found.labels),
            comments,
        )

    def merge(self, number: int, method: MergeMethod = "merge") -> str:
        if self.project.status(self.project.requests[number]) == "need_rebase":
            self.project.rebase(number)
        # GitLab deletes the branch, because kardinal opens with that wish.
        merged = self.project.merge(number, squash=method == "squash", by=PERSON, remove_branch=True)
        return merged.squash_commit_sha or merged.merge_commit_sha or merged.sha

    def close(self, number: int) -> None:
        request = self.project.requests[number]
        request.state = "closed"
        request.closed_by = PERSON

    def require_up_to_date(self) -> None:
        self.project.merge_method = "rebase_merge"

    def update_branch(self, number: int) -> None:
        self.project.rebase(number)

    def retarget(self, number: int, base: str) -> None:
        self.project.requests[number].target = base

    def edit(self, number: int, body: str) -> None:
        self.project.requests[number].description = body

    def retitle(self, number: int, title: str) -> None:
        self.project.requests[number].title = title

    def people(self, number: int) -> list[list[str]]:
        request = self.project.requests[number]
        names = {one: name for name, one in self.project.users.items()}
        return [[names[one] for one in request.reviewers], [], [names[one] for one in request.assignees]]

    def take_off(self, number: int, *, label: str) -> None:
        request = self.project.requests[number]
        request.reviewers = []
        request.assignees = []
        request.labels.remove(label)

    def require_check(self, *, required: bool = True) -> None:
        self.project.required_statuses = {"ci"} if required else set()

    def status(self, number: int, context: str) -> tuple[str, str]:
        request = self.project.requests[number]
        self.project.follow(request)
        found = [one for one in self.project.statuses.get(request.sha, []) if one.name == context]
        return (found[-1].state, found[-1].description or "") if found else ("", "")


class LinearGitLabSite(GitLabSite):
    """A project whose history is a line."""

    methods = frozenset({"rebase", "squash"})

    def __init__(self, repository: GitRepository, server: FakeGitLab) -> None:
        super().__init__(repository, server)
        self.project.merge_method = "ff"


@contextmanager
def serving_site(
    name: str, repository: GitRepository, certificate: Path, *, now: Callable[[], datetime], descriptions: Path | None
) -> Iterator[Site]:
    """Serve a repository at a host; GitHub's needs the published `descriptions`."""
    if name == "gitea":
        with fake_gitea(repository, certificate, now=now) as fake:
            yield GiteaSite(fake)
        return
    root = repository.path.parent / "served"
    path = root / ("acme/config.git" if name == "github" else f"{PATH}.git")
    path.parent.mkdir(parents=True)
    path.symlink_to(repository.path)
    site: GitHubSite | GitLabSite
    if name == "github":
        assert descriptions is not None
        site = GitHubSite(repository, FakeGitHub(root, certificate, descriptions, now=now))
    else:
        kind = LinearGitLabSite if name == "gitlab-ff" else GitLabSite
        site = kind(repository, FakeGitLab(root, certificate, now=now))
    site.server.start()
    try:
        yield site
    finally:
        site.server.stop()
        assert not site.server.problems, "\n".join(site.server.problems)
