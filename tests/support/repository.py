"""Real bare Git repositories, made in a few milliseconds.

Tests look at what is in a repository and write to it with the `git` program, which is another process: what it sees is
what any other client sees, and a commit made here is another client's commit. Where branches are is read without one,
as the fake of a host asks for it at each of its answers.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2
import pytest

from tests.support.names import DEV, PROD, STAGING

__all__ = ["APPLICATION", "IMAGE", "Commit", "GitRepository", "create_repository", "sample_files"]

APPLICATION = "my-app"
IMAGE = "ghcr.io/acme/my-app"

_BRANCHES = "refs/heads/"

_SOMEBODY = {
    "GIT_AUTHOR_NAME": "Somebody Else",
    "GIT_AUTHOR_EMAIL": "somebody@example.com",
    "GIT_COMMITTER_NAME": "Somebody Else",
    "GIT_COMMITTER_EMAIL": "somebody@example.com",
    # No configuration of the machine or its user may change what a test sees.
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
}

_DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {APPLICATION}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: {APPLICATION}
  template:
    metadata:
      labels:
        app: {APPLICATION}
    spec:
      containers:
        - name: app
          image: {IMAGE}
"""

_BASE = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - deployment.yaml
"""

_OVERLAY = f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - ../../base
images:
  # moved by promotions
  - name: {IMAGE}
    newTag: "1.0.0"
"""


@dataclass(frozen=True)
class Commit:
    """One commit of a branch."""

    sha: str
    subject: str
    trailers: dict[str, str]


@dataclass(frozen=True)
class GitRepository:
    """A bare repository on this machine."""

    path: Path

    @property
    def url(self) -> str:
        return self.path.as_uri()

    def git(self, *arguments: str, stdin: str | None = None) -> str:
        """Run git in the repository; what it printed, without the last line end."""
        return self._run(*arguments, stdin=stdin).removesuffix("\n")

    def _run(self, *arguments: str, stdin: str | None = None) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
            env=os.environ | _SOMEBODY,
        )
        assert done.returncode == 0, f"git {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def head(self, branch: str = "main") -> str:
        """Return the commit of a branch that is there."""
        found = self.find(branch)
        assert found is not None, f"{self.path} has no branch {branch}"
        return found

    def find(self, branch: str) -> str | None:
        """Return the commit of a branch, or None where there is no such branch."""
        with self._opened() as opened:
            reference = opened.references.get(f"{_BRANCHES}{branch}")
            return None if reference is None else str(reference.resolve().target)

    def branches(self) -> list[str]:
        """Return the names of all branches, sorted."""
        with self._opened() as opened:
            return sorted(name.removeprefix(_BRANCHES) for name in opened.references if name.startswith(_BRANCHES))

    @contextmanager
    def _opened(self) -> Iterator[pygit2.Repository]:
        opened = pygit2.Repository(str(self.path))
        try:
            yield opened
        finally:
            opened.free()

    def read(self, path: str, branch: str = "main") -> str:
        """Return a file's content."""
        return self._run("show", f"refs/heads/{branch}:{path}")

    def commits(self, branch: str = "main") -> list[Commit]:
        """Return the commits of a branch, newest first."""
        separators = "%x1f%(trailers:only=true,unfold=true)%x1e"
        printed = self.git("log", f"--format=%H%x1f%s{separators}", f"refs/heads/{branch}")
        return [_commit(record) for record in printed.split("\x1e") if record.strip()]

    def promotions(self, environment: str, branch: str = "main") -> list[Commit]:
        """Return the commits that kardinal made for an environment, newest first."""
        return [commit for commit in self.commits(branch) if commit.trailers.get("Kardinal-Environment") == environment]

    def files(self, directory: str = "", branch: str = "main") -> list[str]:
        """Return the paths of all files below a directory, from there."""
        tree = f"refs/heads/{branch}:{directory}".removesuffix(":")
        return self.git("ls-tree", "-r", "--name-only", tree).split()

    def commit(
        self,
        files: Mapping[str, str],
        *,
        message: str = "Work of somebody else",
        branch: str = "main",
        delete: Sequence[str] = (),
    ) -> str:
        """Commit `files` on top of a branch, and others away, as another process would; returns the commit."""
        has_parent = self.find(branch) is not None
        script = [
            f"commit refs/heads/{branch}",
            "mark :1",
            "committer Somebody Else <somebody@example.com> now",
            _data(message),
            *([f"from refs/heads/{branch}^0"] if has_parent else []),
        ]
        for path, content in files.items():
            script += [f"M 100644 inline {path}", _data(content)]
        script += [*(f"D {path}" for path in delete), "get-mark :1"]
        return self.git("fast-import", "--quiet", "--date-format=now", stdin="\n".join(script) + "\n")


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _commit(record: str) -> Commit:
    sha, subject, trailers = record.strip("\n").split("\x1f")
    pairs = (line.partition(": ") for line in trailers.splitlines() if line)
    return Commit(sha, subject, {key: value for key, _, value in pairs})


def create_repository(path: Path, files: Mapping[str, str], *, branch: str = "main") -> GitRepository:
    """Make a bare repository with one commit."""
    path.mkdir(parents=True)
    for name, content in _begun(tuple(files.items()), branch):
        place = f"{path}/{name}"
        if content is None:
            os.mkdir(place)
        else:
            with open(place, "wb") as file:
                file.write(content)
    return GitRepository(path)


_NEEDED = {"HEAD", "config", "hooks", "objects", "refs"}
"""The entries of a new repository that Git needs, and the place for hooks: few are made sooner than many."""


@lru_cache(maxsize=32)
def _begun(files: tuple[tuple[str, str], ...], branch: str) -> list[tuple[str, bytes | None]]:
    """Return the directories and files of such a repository, for most tests begin with the same."""
    with TemporaryDirectory() as directory:
        repository = GitRepository(Path(directory))
        repository.git("init", "--quiet", "--bare", f"--initial-branch={branch}")
        repository.commit(dict(files), message="Begin", branch=branch)
        found = sorted(path for path in repository.path.rglob("*") if path.suffix != ".sample")
        named = [(path, path.relative_to(directory)) for path in found]
        return [
            (str(name), None if path.is_dir() else path.read_bytes())
            for path, name in named
            if name.parts[0] in _NEEDED and name.parts[:2] != ("objects", "info")
        ]


def sample_files(environments: Sequence[str], *, application: str = APPLICATION) -> dict[str, str]:
    """Return a kustomize base and an overlay per environment, under `environments/`."""
    return {
        "base/kustomization.yaml": _BASE,
        "base/deployment.yaml": _DEPLOYMENT.replace(f"name: {APPLICATION}\n", f"name: {application}\n"),
        **{f"environments/{environment}/kustomization.yaml": _OVERLAY for environment in environments},
    }


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """Return a GitOps repository with the three environments of this run."""
    return create_repository(tmp_path / "gitops.git", sample_files([DEV, STAGING, PROD]))
