"""`kardinal plan` reads what edits read: a configuration, an environment's own branch, other repositories."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kardinal.objects import JsonObject
from kardinal_local.plane.audit import WRITES
from tests.agent.config_bundles import LIMITS, config_bundle, config_repository
from tests.agent.inputs import copying, platform_repository
from tests.cli.conftest import Cli
from tests.cli.in_process import cli
from tests.cli.test_plan import changed, secret
from tests.support.names import DEV, TEAM
from tests.support.objects import environment, pipeline
from tests.support.repository import IMAGE, GitRepository
from tests.support.smart_server import PASSWORD, SmartServer, serving, settings_of_a_caller
from tests.support.world import World

__all__ = ["cli"]

HERE = f"environments/{DEV}"
IMAGES = ("--image", f"{IMAGE}:1.3.0")
ENDS = ("git-commit", "git-push", "health-check")
ELSEWHERE = "https://git.example.com/acme"


@pytest.fixture
def server(repository: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of every repository of the test."""
    with serving(repository.path.parent, certificate) as server:
        yield server


@pytest.fixture
def with_git(cli: Cli, certificate: Path, tmp_path: Path) -> Cli:
    """Give the caller's git its credentials."""
    cli.environment["GIT_SSL_CAINFO"] = str(certificate)
    cli.environment |= settings_of_a_caller(tmp_path)
    return cli


def way(url: str, *edits: JsonObject, **fields: Any) -> JsonObject:
    """Return a Pipeline of one environment with these edits."""
    git = {"url": url, "provider": "git"} | fields.pop("git", {})
    steps = [{"uses": "git-clone"}, *edits, *({"uses": name} for name in ENDS)]
    return pipeline(url, environments=[environment(DEV, steps=steps, **fields)], git=git)


def opening(url: str, **config: Any) -> JsonObject:
    return {"uses": "git-clone", "as": "platform", "config": {"url": url, **config}}


async def planned(cli: Cli, *arguments: str) -> JsonObject:
    (found,) = json.loads((await cli.attempt("plan", "my-app", *arguments, "-o", "json")).out)["environments"]
    made: JsonObject = found
    return made


async def clone(repository: GitRepository, to: Path, *, url: str = "") -> Path:
    await asyncio.to_thread(repository.git, "clone", "--quiet", str(repository.path), str(to))
    if url:
        await asyncio.to_thread(GitRepository(to).git, "remote", "set-url", "origin", url)
    return to


SET = {"uses": "kustomize-set-image"}
MERGE = {"uses": "config-merge"}


async def test_an_input_is_read_with_the_callers_own_git_and_nothing_is_written(
    world: World, with_git: Cli, repository: GitRepository, server: SmartServer, tmp_path: Path
) -> None:
    platform = platform_repository(tmp_path)
    platform.git("tag", "-a", "v1", "-m", "x")
    platform.commit({"bases/web/service.yaml": "later\n"})
    tagged = opening(f"{server.url}/platform.git", tag="v1")
    await world.apply(way(f"{server.url}/gitops.git", tagged, copying(), SET))
    refs = [each.git("for-each-ref") for each in (repository, platform)]
    writes = world.audit.count(verbs=WRITES)

    found = await planned(with_git, *IMAGES)

    assert found["files"] == [
        f"{HERE}/base/kustomization.yaml",
        f"{HERE}/base/service.yaml",
        f"{HERE}/kustomization.yaml",
    ]
    assert "+kind: Service" in changed(found["diff"])
    assert [each.git("for-each-ref") for each in (repository, platform)] == refs
    assert world.audit.count(verbs=WRITES) == writes
    assert {request.split()[0] for request in server.requests if "receive-pack" in request} == set()


async def test_an_input_that_is_not_there_is_named(
    world: World, cli: Cli, repository: GitRepository, tmp_path: Path
) -> None:
    platform = platform_repository(tmp_path)
    await world.apply(way(repository.url, opening(platform.url, branch="absent"), copying()))
    assert (await planned(cli, *IMAGES))["error"].startswith(f"input platform: {platform.url} has no branch absent")


async def test_work_trees_stand_for_the_repositories_of_their_remotes(
    world: World, cli: Cli, repository: GitRepository, tmp_path: Path
) -> None:
    platform = platform_repository(tmp_path)
    edits = (opening(f"{ELSEWHERE}/platform", tag="v7"), copying(), SET)
    await world.apply(way(f"{ELSEWHERE}/gitops", *edits))
    own = await clone(repository, tmp_path / "own")
    base = await clone(platform, tmp_path / "base", url=f"{ELSEWHERE}/platform.git")
    other = await clone(platform, tmp_path / "other", url=f"{ELSEWHERE}/other")
    trees = ("--checkout", str(own), "--checkout", str(base))
    before = {tree: GitRepository(tree).git("for-each-ref") for tree in (own, base)}

    done = await cli.attempt("plan", "my-app", *IMAGES, *trees)
    assert "base/service.yaml" in done.out, done.err
    assert {tree: GitRepository(tree).git("for-each-ref") for tree in (own, base)} == before

    done = await cli.attempt("plan", "my-app", *IMAGES, *trees, "--checkout", str(other))
    assert f"{other} is a clone of no repository that is read here" in done.err


@pytest.mark.parametrize("checkout", [True, False])
async def test_a_configuration_is_merged_as_far_as_it_has_landed(
    world: World, with_git: Cli, repository: GitRepository, server: SmartServer, *, tmp_path: Path, checkout: bool
) -> None:
    source = config_repository(tmp_path)
    first = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2")})
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4"), "new.yaml": "new: true\n"})
    landed = f"Promote\n\nKardinal-Config: {first} {server.url}/config.git {HERE}\n"
    text = LIMITS.replace("cpu: 1", "cpu: 2").replace("replicas: 2", "replicas: 9")
    repository.commit({f"{HERE}/limits.yaml": text}, message=landed)
    repository.commit({"README": "later\n"})
    made = config_bundle("config-1", source, sha)
    made["spec"]["artifacts"]["gitCommit"]["repository"] = f"{server.url}/config.git"
    update = {"config": {"repository": f"{server.url}/config.git"}}
    await world.apply(way(f"{server.url}/gitops.git", {"uses": "config-merge"}, update=update), made)
    trees: list[str] = []
    if checkout:
        trees += ["--checkout", str(await clone(repository, tmp_path / "own", url=f"{server.url}/gitops.git"))]
        trees += ["--checkout", str(await clone(source, tmp_path / "config", url=f"{server.url}/config.git"))]

    found = await planned(with_git, "--bundle", "config-1", *trees)

    assert changed(found["diff"]) == ["-cpu: 2", "+cpu: 4", "+new: true"]
    assert bool(server.requests) is not checkout


@pytest.mark.parametrize(("there", "checkout"), [(True, True), (True, False), (False, False)])
async def test_an_environments_own_branch_is_what_is_compared_with(
    world: World,
    with_git: Cli,
    repository: GitRepository,
    server: SmartServer,
    *,
    tmp_path: Path,
    there: bool,
    checkout: bool,
) -> None:
    if there:
        text = repository.read(f"{HERE}/kustomization.yaml")
        repository.commit({"kustomization.yaml": text, "old.yaml": "old\n"}, branch=f"env/{DEV}")
    git = {"layout": "branch"}
    await world.apply(way(f"{server.url}/gitops.git", SET, git=git))
    trees = ["--checkout", str(await clone(repository, tmp_path / "own"))] if checkout else []

    found = await planned(with_git, *IMAGES, *trees)

    assert found["branch"] == f"env/{DEV}"
    expected = [".kardinal/state.yaml", "kustomization.yaml"] + (["old.yaml"] if there else [])
    assert sorted(found["files"]) == expected
    assert ('-    newTag: "1.0.0"' in changed(found["diff"])) is there
    assert '+    newTag: "1.3.0"' in changed(found["diff"])


@pytest.mark.parametrize("checkout", [True, False])
async def test_a_commit_is_planned_on_what_the_branch_of_an_environment_records(
    world: World, with_git: Cli, repository: GitRepository, server: SmartServer, *, tmp_path: Path, checkout: bool
) -> None:
    source = config_repository(tmp_path)
    config = {"repository": f"{server.url}/config.git"}
    repository.commit({f"{HERE}/limits.yaml": LIMITS})
    one = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2")})
    record = {
        "images": [{"name": "app", "reference": f"{IMAGE}:1.2.0"}],
        "config": [{**config, "commit": one, "directory": "", "strategy": "cherry-pick"}],
    }
    text = repository.read(f"{HERE}/kustomization.yaml").replace("1.0.0", "1.2.0")
    branch = {"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 2"), "kustomization.yaml": text}
    repository.commit({**branch, ".kardinal/state.yaml": json.dumps(record)}, branch=f"env/{DEV}")
    two = source.commit({"new.yaml": "new: true\n"})
    made = config_bundle("config-1", source, two)
    made["spec"]["artifacts"]["gitCommit"]["repository"] = config["repository"]
    git = {"layout": "branch"}
    await world.apply(way(f"{server.url}/gitops.git", MERGE, SET, git=git, update={"config": config}), made)
    trees: list[str] = []
    if checkout:
        trees += ["--checkout", str(await clone(repository, tmp_path / "own"))]
        trees += ["--checkout", str(await clone(source, tmp_path / "other", url=config["repository"]))]

    found = await planned(with_git, "--bundle", "config-1", *trees)

    assert found.get("error", "") == ""
    assert sorted(found["files"]) == [".kardinal/state.yaml", "new.yaml"]


async def test_the_secret_of_an_input_goes_only_to_the_hosts_it_names(
    world: World, cli: Cli, repository: GitRepository, server: SmartServer, *, certificate: Path, tmp_path: Path
) -> None:
    platform_repository(tmp_path)
    cli.environment["SSL_CERT_FILE"] = str(certificate)
    edits = (opening(f"{server.url}/platform.git", secretRef={"name": "git"}), copying(), SET)
    await world.apply(secret("git.example.com"), way(repository.url, *edits))
    refused = await cli.attempt("plan", "my-app", *IMAGES, "--use-secret")
    assert f"config.secretRef: Secret {TEAM}/git is not marked" in refused.err
    assert set(server.authorisations) <= {None}
    await world.apply(secret(server.url.removeprefix("https://")))
    done = await cli.attempt("plan", "my-app", *IMAGES, "--use-secret")
    assert "base/service.yaml" in done.out
    assert PASSWORD not in done.out + done.err + refused.err
