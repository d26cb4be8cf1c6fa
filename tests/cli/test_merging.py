"""`kardinal pr merge` beside a pause, and for a Bundle that is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.promotion.kinds import BUNDLE
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import PROD, TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import GitRepository
from tests.support.reviewer import propose
from tests.support.world import World

__all__ = ["cli"]


@pytest.fixture
async def waiting(world: World, repository: GitRepository) -> GitRepository:
    """Return the repository of a Pipeline with pull request 1, which Bundle my-app-1 waits for."""
    await world.apply(pipeline(repository, environments=[environment(PROD, approval="pr-review")]), bundle("my-app-1"))
    path = f"environments/{PROD}/kustomization.yaml"
    branch = f"kardinal/my-app-1/{PROD}"
    repository.git("branch", branch, "main")
    repository.commit({path: repository.read(path) + "# 1.1.0\n"}, branch=branch)
    await propose(world, repository, branch, pipeline="my-app", bundle="my-app-1")
    return repository


async def test_a_paused_pipeline_is_not_merged_by_mistake(cli: Cli, waiting: GitRepository) -> None:
    head = waiting.head()
    await cli("pause", "my-app", "--reason", "audit week")
    done = await cli.attempt("pr", "merge", "1")
    assert done.code == 1
    assert "Pipeline my-app is paused: audit week" in done.err
    assert "kardinal resume my-app" in done.err
    assert waiting.head() == head
    await cli("resume", "my-app")
    assert "#1 merged" in await cli("pr", "merge", "1")


async def test_a_bundle_that_is_gone_is_not_merged_by_mistake(cli: Cli, world: World, waiting: GitRepository) -> None:
    await world.delete(BUNDLE, "my-app-1")
    for where in ((), ("--repo", str(waiting.path))):
        done = await cli.attempt("pr", "merge", "1", *where)
        assert done.code == 1
        assert "Bundle my-app-1 of pull request 1 is gone" in done.err
        assert "kardinal pr close 1" in done.err
    assert "#1 merged" in await cli("pr", "merge", "1", "--force")


async def test_a_repository_that_is_named_is_merged_without_its_api_server_and_a_note_says_so(
    cli: Cli, waiting: GitRepository, tmp_path: Path
) -> None:
    alone = InProcess(tmp_path / "none", tmp_path)
    done = await alone.attempt("pr", "merge", "1", "--repo", str(waiting.path))
    assert done.code == 0, done.err
    assert "no API server can be reached" in done.err


async def test_a_pipeline_of_another_repository_says_nothing_about_this_one(
    cli: Cli, world: World, waiting: GitRepository
) -> None:
    await world.apply(pipeline("file:///srv/other.git", environments=[PROD]))
    await world.delete(BUNDLE, "my-app-1")
    done = await cli.attempt("pr", "merge", "1", "--repo", str(waiting.path))
    assert done.code == 0, done.err
    assert f"namespace {TEAM} has no Pipeline my-app of this repository" in done.err


async def test_hooks_are_bypassed_by_a_merge_only_where_that_is_asked_for(cli: Cli, waiting: GitRepository) -> None:
    hook = waiting.path / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    done = await cli.attempt("pr", "merge", "1")
    assert done.code == 1
    assert "bypass: update" in done.err
    assert "#1 merged" in await cli("pr", "merge", "1", "--allow-bypassing-hooks")
