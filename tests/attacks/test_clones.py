"""A directory that others made, in which a person runs a command: its Git configuration starts nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.expressions.compiler import INLINE_EXPRESSION
from tests.cli.conftest import Cli, cli
from tests.support.names import DEV
from tests.support.objects import bundle, pipeline
from tests.support.renderers import program
from tests.support.repository import IMAGE, GitRepository
from tests.support.smart_server import SmartServer, serving, settings_of_a_caller
from tests.support.world import World

__all__ = ["cli"]


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Return a file that is there when a program of the hostile configuration has run."""
    return tmp_path / "started"


@pytest.fixture
def hostile(repository: GitRepository, started: Path, tmp_path: Path) -> Path:
    """Return a bare repository as a checkout of plain files brings it, with every setting that names a program."""
    made = tmp_path / "clone" / "vendor"
    made.parent.mkdir()
    repository.git("clone", "--quiet", "--bare", str(repository.path), str(made))
    payload = program(tmp_path, "payload", f"echo x >>{started}; exit 1")
    made.joinpath("config").write_text(
        f"""\
[core]
    repositoryformatversion = 0
    bare = true
    fsmonitor = {payload}
    sshCommand = {payload}
    pager = {payload}
    hooksPath = {tmp_path}
[url "ext::{payload} "]
    insteadOf = https://
    insteadOf = ssh://
    insteadOf = file://
[remote "origin"]
    url = {tmp_path}/nowhere
    uploadpack = {payload}
    promisor = true
    partialclonefilter = blob:none
[extensions]
    partialClone = origin
[protocol]
    allow = always
[credential]
    helper = {payload}
[gpg]
    program = {payload}
[log]
    showSignature = true
[diff]
    external = {payload}
"""
    )
    return made


def test_the_hostile_configuration_starts_a_program_of_its_own_under_git(hostile: Path, started: Path) -> None:
    command = ["git", "-C", str(hostile), "ls-remote", "https://git.example.com/x"]
    subprocess.run(command, capture_output=True, check=False, timeout=30)
    assert started.exists()


@pytest.fixture
def server(cli: Cli, repository: GitRepository, certificate: Path, tmp_path: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of the repository, whose password the caller's git knows."""
    cli.environment["GIT_SSL_CAINFO"] = str(certificate)
    cli.environment |= settings_of_a_caller(tmp_path)
    with serving(repository.path.parent, certificate) as server:
        yield server


async def test_a_plan_in_a_directory_of_others_runs_nothing_of_theirs(
    world: World, cli: Cli, server: SmartServer, hostile: Path, started: Path
) -> None:
    await world.apply(pipeline(f"{server.url}/gitops.git", provider="git", environments=[DEV]))
    done = await cli.within(hostile).attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0")
    assert "changes 1 file" in done.out, done.err
    assert not started.exists()


@pytest.mark.parametrize("lacking", [False, True])
async def test_a_clone_of_others_is_planned_on_without_running_what_it_names(
    world: World, cli: Cli, hostile: Path, started: Path, lacking: bool
) -> None:
    if lacking:  # what `git` would fetch from its remote when it reads
        for objects in (*hostile.glob("objects/pack/*"), *hostile.glob("objects/??/*")):
            objects.unlink()
    await world.apply(pipeline("https://git.example.com/acme/gitops", provider="git", environments=[DEV]))
    done = await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "--checkout", str(hostile))
    assert not started.exists()
    assert ("has no commit checked out" in done.err) if lacking else ('newTag: "1.3.0"' in done.out), done.err


async def test_pipelines_are_guessed_from_a_clone_of_others_without_running_what_it_names(
    cli: Cli, hostile: Path, started: Path
) -> None:
    done = await cli.within(hostile).attempt("init", "--from", ".")
    assert "kind: Pipeline" in done.out, done.err
    assert not started.exists()


async def test_commits_of_a_clone_of_others_are_listed_without_running_what_it_names(
    world: World, cli: Cli, repository: GitRepository, hostile: Path, started: Path
) -> None:
    commits = [repository.git("rev-parse", "main"), repository.commit({"README": "two"})]
    repository.git("push", "--quiet", str(hostile), "main")
    for name, commit in zip(("my-app-1", "my-app-2"), commits, strict=True):
        await world.apply(bundle(name, tag=name[-1], provenance={"commitSHA": commit}))
    started.unlink(missing_ok=True)
    done = await cli.attempt("diff", "my-app-1", "my-app-2", "--checkout", str(hostile))
    assert f"\n  {commits[1][:7]}" in done.out, done.err
    assert not started.exists()


@pytest.mark.parametrize("name", ["config", "shallow", "commondir"])
async def test_a_file_of_a_clone_that_has_no_end_is_refused(world: World, cli: Cli, hostile: Path, name: str) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops", provider="git", environments=[DEV]))
    (hostile / name).unlink(missing_ok=True)
    (hostile / name).symlink_to("/dev/zero")
    done = await cli.attempt("plan", "my-app", "--image", f"{IMAGE}:1.3.0", "--checkout", str(hostile))
    assert done.code == 1
    assert f"{name} is no file of at most 1 MiB" in done.err


async def test_modules_of_the_directory_in_which_a_program_runs_are_not_imported(
    tmp_path: Path, started: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "clone" / "kardinal_controller"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(f"open({str(started)!r}, 'w').close()\n")
    monkeypatch.chdir(package.parent)
    compiler = ExpressionCompiler()
    try:
        found = await compiler.prepare(["true" + " && true" * INLINE_EXPRESSION])
    finally:
        await compiler.stop()
    assert not started.exists()
    assert len(found) == 1
