"""A real bare repository with three environments, and Git itself to look at it with."""

from __future__ import annotations

import asyncio
import gc
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from kardinal.git import GitCredentials, GitRunner, Repositories, Repository
from kardinal.processes.isolation import find_walls
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Edit, Tree
from tests.support.clock import VirtualClock
from tests.support.renderers import Rendered, install
from tests.support.repository import create_repository
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving

GIT = shutil.which("git") or "git"
ENVIRONMENTS = ("dev", "staging", "prod")


class Git:
    """The `git` command on one repository, free of this machine's configuration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "somebody",
            "GIT_AUTHOR_EMAIL": "somebody@example.org",
            "GIT_COMMITTER_NAME": "somebody",
            "GIT_COMMITTER_EMAIL": "somebody@example.org",
        }

    def __call__(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 - subprocess's own word
        done = subprocess.run(
            [GIT, "-C", str(self.directory), *arguments],
            env=self.environment,
            input=input,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(
        self,
        files: dict[str, str],
        *,
        branch: str = "main",
        parent: str | None = None,
        merged: str | None = None,
        message: str = "x",
    ) -> str:
        """Put a commit with exactly these files on a branch, as another process would.

        The parents are written as `git fast-import` takes them, for example `refs/heads/main^0`.
        """
        script = [
            f"commit refs/heads/{branch}",
            "mark :1",
            "committer somebody <somebody@example.org> now",
            _data(f"{message}\n"),
            *([f"from {parent}"] if parent else []),
            *([f"merge {merged}"] if merged else []),
            "deleteall",
            *(f"M 100644 inline {path}\n{_data(text)}" for path, text in files.items()),
            "get-mark :1",
        ]
        return self("fast-import", "--quiet", "--date-format=now", input="\n".join(script) + "\n")


def _data(text: str) -> str:
    return f"data {len(text.encode(errors='surrogateescape'))}\n{text}"


def manifests() -> dict[str, str]:
    """Return the content the repository starts with."""
    files = {f"environments/{name}/kustomization.yaml": f"# {name}\nimages: []\n" for name in ENVIRONMENTS}
    return {**files, "base/deployment.yaml": "kind: Deployment\n", "README.md": "hello\n"}


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens on a thread."""
    async with asyncio.timeout(20):
        while not condition():
            # The programs that are waited for need the processor more.
            await asyncio.sleep(0.002)


def setting(environment: str, content: bytes) -> Edit:
    """Return an edit that gives an environment's file this content."""

    def edit(tree: Tree) -> dict[str, bytes]:
        return {f"environments/{environment}/kustomization.yaml": content}

    return edit


def message(environment: str, bundle: str = "app-1") -> CommitMessage:
    """Return the message of a promotion, with its trailers."""
    return CommitMessage(
        f"promote {bundle} to {environment}",
        "why",
        {"Kardinal-Bundle": bundle, "Kardinal-Environment": environment, "Kardinal-Step": f"{bundle}-{environment}"},
    )


@pytest.fixture
def bare(tmp_path: Path) -> Git:
    """Return a bare repository whose branch main has one commit."""
    return Git(create_repository(tmp_path / "gitops.git", manifests()).path)


@pytest.fixture
def runner() -> Iterator[GitRunner]:
    runner = GitRunner()
    yield runner
    runner.close()
    # What libgit2 has opened refers to itself and keeps its packs open: the young garbage is collected in a moment, and
    # all of it, as the search for leaks does, in a third of a second.
    gc.collect(1)


@pytest.fixture
async def repositories(tmp_path: Path, runner: GitRunner, clock: VirtualClock) -> AsyncIterator[Repositories]:
    repositories = Repositories(tmp_path / "cache", runner=runner, clock=clock, allow_local=True)
    yield repositories
    await repositories.close()


@pytest.fixture
def repository(repositories: Repositories, bare: Git) -> Repository:
    return repositories.open(str(bare.directory))


@pytest.fixture
def server(bare: Git, certificate: Path) -> Iterator[SmartServer]:
    """Serve the directory of `bare` over HTTPS."""
    with serving(bare.directory.parent, certificate) as server:
        yield server


@pytest.fixture
def remote(repositories: Repositories, server: SmartServer) -> Repository:
    """`bare`, as it is seen over HTTPS."""
    return repositories.open(f"{server.url}/gitops.git", GitCredentials(USER, PASSWORD))


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a directory that is the whole PATH, with what there is of kustomize, helm and kubectl."""
    install(tmp_path / "programs")
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    return tmp_path / "programs"


@pytest.fixture
def renderer(programs: Path) -> Iterator[ProgramRenderer]:
    del programs
    renderer = ProgramRenderer(RendererOptions())
    yield renderer
    renderer.close()


@pytest.fixture
def rendered(bare: Git, repository: Repository) -> Rendered:
    async def render(files: dict[str, str], function: Callable[[Tree], bytes]) -> bytes:
        commit = bare.commit(files, branch=f"files-{len(bare('branch').splitlines())}")
        found: list[bytes] = []

        def plan(tree: Tree) -> dict[str, bytes | None]:
            found.append(function(tree))
            return {}

        await repository.plan(commit, plan)
        return found[0]

    return render


@pytest.fixture
def walls() -> None:
    """Skip a test on a machine that has no walls for renderers."""
    if missing := find_walls().missing:
        pytest.skip(missing)
