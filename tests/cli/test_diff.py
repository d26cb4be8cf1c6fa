"""`kardinal diff`: what one Bundle brings that another one does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.views.differences import commit_ranges, differences
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.cli.promoted import put_bundle, verified
from tests.support.names import DEV, PROD
from tests.support.objects import bundle, pipeline
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["cli"]

OLD = "a" * 40
NEW = "b" * 40
DIGEST = f"sha256:{'1' * 64}"


def _bundle(name: str, *images: Any, charts: Any = (), commit: Any = None, **provenance: Any) -> Bundle:
    artifacts = {"images": list(images), "charts": list(charts), **({"gitCommit": commit} if commit else {})}
    origin: dict[str, Any] = {"provenance": provenance} if provenance else {}
    return Bundle.model_validate(bundle(name, artifacts=artifacts, **origin))


def test_every_value_that_differs_is_told_and_no_other() -> None:
    app = {"reference": "ghcr.io/acme/app:1"}
    side = {"reference": "nginx:1"}
    chart = {"repository": "https://charts.example.com", "name": "redis", "version": "1.0.0"}
    before = _bundle("a", app, side, charts=[chart], author="dana", commitSHA=OLD)
    after = _bundle(
        "b",
        {"reference": "ghcr.io/acme/app:2", "digest": DIGEST},
        {"reference": "docker.io/library/nginx:1"},
        charts=[{**chart, "version": "1.1.0"}],
        author="dana",
        commitSHA=NEW,
    )
    assert [(each.kind, each.name, each.before, each.after) for each in differences(before, after)] == [
        ("image", "ghcr.io/acme/app", "1", f"2@{DIGEST}"),
        ("chart", "https://charts.example.com redis", "1.0.0", "1.1.0"),
        ("provenance", "commit", OLD, NEW),
    ]


def test_artifact_of_one_bundle_only_is_shown() -> None:
    commit = {"repository": "https://git.example.com/acme/config", "sha": NEW, "path": "envs"}
    odd = {"reference": "not an image"}
    found = differences(_bundle("a", {"reference": "app:1"}), _bundle("b", odd, commit=commit))
    assert [(each.kind, each.before, each.after) for each in found] == [
        ("image", "1", ""),
        ("image", "", "not an image"),
        ("configuration", "", NEW),
    ]


@pytest.mark.parametrize(
    ("run", "url"),
    [
        ("https://github.com/acme/app/actions/runs/7", f"https://github.com/acme/app/compare/{OLD}...{NEW}"),
        ("https://gl.example.com/a/b/app/-/pipelines/7", f"https://gl.example.com/a/b/app/-/compare/{OLD}...{NEW}"),
        ("https://github.com/acme/app/actions/runs/7?x=1", ""),
        ("https://ci.example.com/job/7", ""),
        ("javascript://github.com/acme/app/actions/runs/7", ""),
        ("https://user:word@github.com/acme/app/actions/runs/7", ""),
        ("https://github.com/" + "a/" * 2000 + "actions/runs/7", ""),
    ],
)
def test_commits_are_compared_where_the_address_of_the_run_tells_the_repository(run: str, url: str) -> None:
    before, after = (_bundle(name, commitSHA=sha, ciRunURL=run[:2048]) for name, sha in (("a", OLD), ("b", NEW)))
    (between,) = commit_ranges(before, after)
    assert (between.before, between.after, between.url) == (OLD, NEW, url)


def test_commits_of_two_repositories_are_not_compared() -> None:
    runs = [f"https://github.com/acme/{name}/actions/runs/7" for name in ("app", "fork")]
    (between,) = commit_ranges(
        _bundle("a", commitSHA=OLD, ciRunURL=runs[0]), _bundle("b", commitSHA=NEW, ciRunURL=runs[1])
    )
    assert (between.repository, between.url) == ("", "")


@pytest.mark.parametrize("commit", ["--output=/tmp/x", "main", "", "HEAD~1", "A" * 40])
def test_invalid_commit_is_not_asked_for(commit: str) -> None:
    assert list(commit_ranges(_bundle("a", commitSHA=OLD), _bundle("b", commitSHA=commit))) == []


async def test_two_bundles_are_compared_with_the_commits_between(
    cli: Cli, world: World, repository: GitRepository
) -> None:
    commits = [repository.commit({"README": text}) for text in ("one", "two", "three")]
    for name, commit in (("my-app-1", commits[0]), ("my-app-2", commits[2])):
        await world.apply(bundle(name, tag=name[-1], provenance={"commitSHA": commit}))
    printed = await cli("diff", "my-app-1", "my-app-2", "--checkout", str(repository.path))
    assert [line.split()[-2:] for line in printed.splitlines() if line.startswith(("KIND", "image"))] == [
        ["my-app-1", "my-app-2"],
        ["1", "2"],
    ]
    listed = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")]
    assert [commit[: len(line)] for commit, line in zip((commits[2], commits[1]), listed, strict=True)] == listed
    assert f"git log --oneline {commits[0]}..{commits[2]}" in await cli("diff", "my-app-1", "my-app-2")


async def test_a_bundle_is_compared_with_what_ran_in_an_environment_before(cli: Cli, world: World) -> None:
    await world.apply(pipeline("https://git.example.com/acme/gitops.git", environments=[DEV, PROD]))
    await put_bundle(world, "my-app-1", tag="1", sequence=1, environments={DEV: verified(8), PROD: verified(9)})
    await put_bundle(world, "my-app-2", tag="2", sequence=2, environments={DEV: verified(10)})
    await put_bundle(world, "my-app-3", tag="3", sequence=3, environments={DEV: verified(11)})

    async def before(name: str, environment: str) -> str:
        found = json.loads(await cli("diff", name, "--env", environment, "-o", "json"))
        assert found["to"]["bundle"] == name
        return str(found["from"]["bundle"])

    assert await before("my-app-3", DEV) == "my-app-2"
    assert await before("my-app-2", DEV) == "my-app-1"
    assert await before("my-app-3", PROD) == "my-app-1"
    first = await cli.attempt("diff", "my-app-1", "--env", DEV)
    assert (first.code, f"no other Bundle of Pipeline my-app was Verified in {DEV} before" in first.err) == (1, True)


async def test_mistakes_are_told_with_what_to_do(cli: Cli, world: World) -> None:
    assert (await cli.attempt("diff", "one")).code == 2
    assert (await cli.attempt("diff", "one", "two", "--env", DEV)).code == 2
    missing = await cli.attempt("diff", "one", "two")
    assert (missing.code, "no Bundle one in namespace" in missing.err) == (1, True)
