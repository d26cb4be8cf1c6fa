"""Attacks by those who may create Bundles, or commit to a configuration repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.objects import SECRET
from tests.agent.config_bundles import LIMITS, config_bundle, config_repository, config_step
from tests.agent.promotion_steps import put, reached, start_agent
from tests.support.names import DEV, TEAM
from tests.support.repository import GitRepository
from tests.support.secret_values import secret_value
from tests.support.world import World

HERE = f"environments/{DEV}"


@pytest.fixture
def source(tmp_path: Path) -> GitRepository:
    return config_repository(tmp_path)


async def refused(world: World, repository: GitRepository, source: GitRepository, sha: str, /, **config: str) -> str:
    """Promote a commit; return why it failed, with nothing written."""
    before = repository.head()
    await world.apply(config_bundle("config-1", source, sha))
    await put(world, config_step(repository, source, bundle="config-1", **config))
    status = await reached(world, "Failed", bundle="config-1")
    assert repository.head() == before
    message: str = status["message"]
    return message


async def test_a_bundle_does_not_choose_the_repository(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    """A PromotionStep made by hand passes by translation, and the agent decides the same."""
    await start_agent(world)
    elsewhere = "https://git.example.org/team/allowed"
    message = await refused(world, repository, source, source.head(), repository=elsewhere)
    assert "takes configuration from https://git.example.org/team/allowed" in message


async def test_a_commit_that_is_on_no_named_branch_is_not_merged(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    """On a host, a fork or an unmerged pull request puts commits into the repository."""
    await start_agent(world)
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 400")}, branch="pull/7")
    assert "is not on the branch that configuration is taken from" in await refused(world, repository, source, sha)


async def test_a_link_in_the_configuration_is_not_followed(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    script = "commit refs/heads/main\ncommitter X <x@example.com> now\ndata 4\nlink\nfrom refs/heads/main^0\n"
    source.git(
        "fast-import", "--quiet", "--date-format=now", stdin=f"{script}M 120000 inline a.yaml\ndata 11\n/etc/passwd\n"
    )
    message = await refused(world, repository, source, source.head())
    assert "a.yaml: is a symbolic link or a submodule in the configuration" in message


async def test_a_directory_that_is_a_link_is_not_followed(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    script = "commit refs/heads/main\ncommitter X <x@example.com> now\ndata 4\nlink\nfrom refs/heads/main^0\n"
    source.git("fast-import", "--quiet", "--date-format=now", stdin=f"{script}M 120000 inline app\ndata 5\nother\n")
    sha = source.commit({"other/a.yaml": "a\n"})
    assert "app is a symbolic link" in await refused(world, repository, source, sha, **{"from": "app"})


async def test_a_commit_of_very_many_files_is_refused_before_it_is_read(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    sha = source.commit({f"d{number % 100}/f{number}.yaml": f"{number}\n" for number in range(5_100)})
    assert "the commit changes more than 5,000 files" in await refused(world, repository, source, sha)


async def test_a_large_file_is_refused_by_its_size(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    await start_agent(world)
    sha = source.commit({"large.yaml": "x" * (1 << 20) + "x"})
    assert "large.yaml: has 1,048,577 bytes" in await refused(world, repository, source, sha)


async def test_a_path_with_dots_does_not_leave_the_environment(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    """Git does not check what other programs write into a tree."""
    await start_agent(world)
    blob = source.git("hash-object", "-w", "--stdin", stdin="evil\n")
    inner = source.git("mktree", stdin=f"100644 blob {blob}\tprod.yaml\n")
    outer = source.git("mktree", stdin=f"040000 tree {inner}\t..\n")
    commit = source.git("commit-tree", outer, "-p", "main", "-m", "evil")
    source.git("update-ref", "refs/heads/main", commit)
    assert "`..` is not allowed" in await refused(world, repository, source, commit)


async def test_a_secret_is_not_sent_to_a_host_that_it_does_not_name(world: World, repository: GitRepository) -> None:
    await start_agent(world)
    await world.client.create(
        SECRET,
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "deploy", "namespace": TEAM, "labels": {"kardinal.io/credentials": "git"}}
            | {"annotations": {"kardinal.io/hosts": "git.example.org"}},
            "stringData": {"token": secret_value("team")},
        },
    )
    elsewhere = "https://evil.example.org/config"
    made = config_bundle("config-1", repository, "0" * 40)
    made["spec"]["artifacts"]["gitCommit"]["repository"] = elsewhere
    await world.apply(made)
    step = config_step(repository, repository, bundle="config-1", repository=elsewhere)
    step["spec"]["update"]["config"]["secretRef"] = {"name": "deploy"}
    await put(world, step)
    message = (await reached(world, "Failed", bundle="config-1"))["message"]
    assert "is not marked as a Git credential for evil.example.org" in message
    assert "s3cr3t" not in message


async def test_a_forged_trailer_reaches_no_other_directory(
    world: World, repository: GitRepository, source: GitRepository
) -> None:
    """A person who may push to the branch can say that a commit has landed: it is believed for that directory alone."""
    await start_agent(world)
    old = source.head()
    sha = source.commit({"limits.yaml": LIMITS.replace("cpu: 1", "cpu: 4")})
    forged = f"Work\n\nKardinal-Config: {sha} {source.url} {HERE}\n\nKardinal-Config: {sha} {source.url} base\n"
    before = repository.files()
    repository.commit({"note.txt": "x\n"}, message=forged)
    await world.apply(config_bundle("config-1", source, old))
    await put(world, config_step(repository, source, bundle="config-1", strategy="overlay"))
    await reached(world, "HealthChecking", bundle="config-1")
    changed = repository.git("diff", "--name-only", "HEAD~1", "HEAD").split()
    assert all(path.startswith(f"{HERE}/") for path in changed)
    assert set(before) <= set(repository.files())
