"""A real Gitea, one for each worker, and in it an organisation, a repository and its users for each test.

`make test-hosts` builds it first and runs with `--gitea`, which chooses the tests that ask for `gitea`, themselves or
by the parameter of `host_server`. Without that option these are skipped.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import ssl
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hack.gitea.assets import GITEA
from hack.gitea.server import RunningGitea, running_gitea
from hack.kube.assets import built
from tests.support.names import DEV, PROD, STAGING
from tests.support.repository import create_repository, sample_files
from tests.support.secret_values import know_secret

__all__ = ["GiteaProject", "Person"]

PASSWORD = "correct-horse-battery"
BOT_SCOPES = ("write:repository", "write:issue", "read:user")
"""The scopes that the guide to Gitea names; a test that needs another one finds the guide wrong."""


@dataclass(frozen=True, slots=True, repr=False)
class Person:
    """A user of the host and a token with every right that the user has."""

    name: str
    token: str


@dataclass(slots=True)
class GiteaProject:
    """A private repository of a new organisation; `bot` is kardinal's user, `alice` may write, `carol` only read."""

    server: RunningGitea
    organization: str
    repository: str
    people: dict[str, Person] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"{self.server.url}/{self.organization}/{self.repository}.git"

    @property
    def bare(self) -> Path:
        """Return the directory of the repository at the host."""
        return self.server.directory / "data" / "gitea-repositories" / self.organization / f"{self.repository}.git"

    @property
    def path(self) -> str:
        """Return the path of the repository in the API."""
        return f"/repos/{self.organization}/{self.repository}"

    def api(self, method: str, path: str, body: object = None, *, by: str = "") -> Any:
        """Send a request as a person, or as the administrator, and return what is answered; fails on an error."""
        status, value = self.ask(method, path, body, by=by)
        assert status < 300, f"{method} {path}: {status} {value}"
        return value

    def ask(self, method: str, path: str, body: object = None, *, by: str = "") -> tuple[int, Any]:
        """Send a request and return the status and the answer."""
        token = self.people[by].token if by else self.server.token
        return _request(self.server, method, path, body, {"Authorization": f"token {token}"})

    def git_options(self, by: str) -> list[str]:
        """Return the options with which `git` reaches the repository as a person."""
        person = self.people[by]
        encoded = base64.b64encode(f"{person.name}:{person.token}".encode()).decode()
        return [
            "-c",
            f"http.sslCAInfo={self.server.directory / 'ca.crt'}",
            "-c",
            f"http.extraHeader=Authorization: Basic {encoded}",
        ]

    def revoke(self, who: str) -> None:
        """Take every token of a person back."""
        person = self.people[who]
        path = f"/users/{person.name}/tokens"
        _, tokens = _request(self.server, "GET", path, None, _basic(person.name))
        for token in tokens:
            _request(self.server, "DELETE", f"{path}/{token['id']}", None, _basic(person.name))

    def behind(self, number: int) -> int:
        """Return by how many commits Gitea knows a pull request to be behind; no API shows that.

        It is counted some time after a push to the base, and the protection of a branch goes by it.
        """
        query = "SELECT commits_behind FROM pull_request WHERE base_repo_id = ? AND `index` = ?"
        repository = self.api("GET", self.path)["id"]
        with closing(sqlite3.connect(f"file:{self.server.directory / 'gitea.db'}?mode=ro", uri=True)) as database:
            (commits,) = database.execute(query, (repository, number)).fetchone()
        return int(commits)

    def protect(self, branch: str, **rules: object) -> None:
        """Put a protection on a branch, or change the one that it has."""
        path = f"{self.path}/branch_protections"
        status, _ = self.ask("PATCH", f"{path}/{branch}", rules)
        if status == 404:
            self.api("POST", path, {"rule_name": branch, **rules})


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kardinal")
    group.addoption("--gitea", action="store_true", help="run only tests that use a real Gitea, which is built before")
    group.addoption("--record-hosts", action="store_true", help="store what it answers in tests/hosts/recorded")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("gitea"):
        config.hook.pytest_deselected(items=[item for item in items if not _uses_gitea(item)])
        items[:] = [item for item in items if _uses_gitea(item)]


def _uses_gitea(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "gitea" in item.fixturenames or parameters.get("host_server") == "gitea"


@pytest.fixture(scope="session")
def gitea(pytestconfig: pytest.Config) -> Iterator[RunningGitea]:
    """Run Gitea for the tests of this worker."""
    if not pytestconfig.getoption("gitea"):
        pytest.skip("needs a real Gitea: `make test-hosts`")
    if not built(GITEA):
        pytest.skip("Gitea is not built: python -m hack.gitea.assets, with Go 1.26 or newer and a C compiler")
    with running_gitea() as running:
        yield running


@pytest.fixture
def gitea_project(gitea: RunningGitea) -> GiteaProject:
    """Return a repository of this test alone, with manifests of three environments."""
    return new_project(gitea, sample_files([DEV, STAGING, PROD]))


def new_project(server: RunningGitea, files: Mapping[str, str]) -> GiteaProject:
    """Make an organisation, a repository whose first commit has these files, and its users."""
    unique = uuid.uuid4().hex[:8]
    project = GiteaProject(server, f"org-{unique}", "config")
    project.api("POST", "/orgs", {"username": project.organization, "visibility": "private"})
    _adopt(project, files)
    for name, permission, scopes in (
        ("bot", "write", BOT_SCOPES),
        ("alice", "write", ("all",)),
        ("carol", "read", ("all",)),
    ):
        login = f"{name}-{unique}"
        user = {"username": login, "email": f"{login}@example.org", "password": PASSWORD, "must_change_password": False}
        project.api("POST", "/admin/users", user)
        project.api("PUT", f"{project.path}/collaborators/{login}", {"permission": permission})
        project.people[name] = Person(login, new_token(server, login, scopes))
    know_secret(project.people["bot"].token)
    return project


def _adopt(project: GiteaProject, files: Mapping[str, str]) -> None:
    """Put a repository where Gitea keeps its own, and have it taken over.

    Each push that Gitea takes starts three programs, of a tenth of a second each; a commit by its API is such a push.
    """
    create_repository(project.bare, files)
    owner = project.server.directory.stat()
    # The first one makes the directory of all.
    for path in (project.bare.parents[1], project.bare.parent, *project.bare.parent.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    project.api("POST", f"/admin/unadopted/{project.organization}/{project.repository}")
    project.api("PATCH", project.path, {"private": True, "default_branch": "main"})


def new_token(server: RunningGitea, login: str, scopes: tuple[str, ...]) -> str:
    """Return a new token of a user."""
    body = {"name": uuid.uuid4().hex, "scopes": list(scopes)}
    status, value = _request(server, "POST", f"/users/{login}/tokens", body, _basic(login))
    assert status == 201, value
    return str(value["sha1"])


def _basic(login: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{login}:{PASSWORD}".encode()).decode()}


def _request(server: RunningGitea, method: str, path: str, body: object, headers: Mapping[str, str]) -> tuple[int, Any]:
    context = ssl.create_default_context(cafile=str(Path(server.directory) / "ca.crt"))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{server.url}/api/v1{path}", data=data, method=method)  # noqa: S310
    for name, value in {**headers, "Content-Type": "application/json"}.items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:  # noqa: S310
            status = answer.status
            text = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status = error.code
            text = error.read()
    try:
        return status, json.loads(text) if text else None
    except ValueError:
        return status, text.decode(errors="replace")
