"""Real bare Git repositories, made in a few milliseconds.

Tests look at a repository and write to it with the `git` program, which is another process: what it sees is what any
other client sees, and a commit made here is another client's commit.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.names import DEV, PROD, STAGING

__all__ = ["APPLICATION", "IMAGE", "Commit", "GitRepository", "create_repository", "sample_files"]

APPLICATION = "my-app"
IMAGE = "ghcr.io/acme/my-app"

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
        return self.git("rev-parse", f"refs/heads/{branch}")

    def branches(self) -> list[str]:
        return self.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split()

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
        has_parent = branch in self.branches()
        script = [
            f"commit refs/heads/{branch}",
            "committer Somebody Else <somebody@example.com> now",
            _data(message),
            *([f"from refs/heads/{branch}^0"] if has_parent else []),
        ]
        for path, content in files.items():
            script += [f"M 100644 inline {path}", _data(content)]
        script += [f"D {path}" for path in delete]
        self.git("fast-import", "--quiet", "--date-format=now", stdin="\n".join(script) + "\n")
        return self.head(branch)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def _commit(record: str) -> Commit:
    sha, subject, trailers = record.strip("\n").split("\x1f")
    pairs = (line.partition(": ") for line in trailers.splitlines() if line)
    return Commit(sha, subject, {key: value for key, _, value in pairs})


def create_repository(path: Path, files: Mapping[str, str], *, branch: str = "main") -> GitRepository:
    """Make a bare repository with one commit."""
    path.mkdir(parents=True)
    repository = GitRepository(path)
    repository.git("init", "--quiet", "--bare", f"--initial-branch={branch}")
    repository.commit(files, message="Begin", branch=branch)
    return repository


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
