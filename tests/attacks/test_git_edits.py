"""Attacks by the content of a repository: files, trees and links that cost more than they are worth."""

from __future__ import annotations

import resource
import time
from typing import Any

from kardinal.objects import JsonObject
from kardinal.promotion.api import names
from kardinal.promotion.kinds import PROMOTION_STEP
from tests.support.names import DEV, PROD
from tests.support.objects import bundle, environment, pipeline
from tests.support.programs import start_controller
from tests.support.repository import IMAGE, GitRepository
from tests.support.world import World

BUNDLE = "app-1"
FILE = f"environments/{DEV}/kustomization.yaml"
MIB = 1 << 20


def a_step_has_ended(step: JsonObject) -> bool:
    return (step.get("status") or {}).get("state") in ("Failed", "HealthChecking", "Verified")


async def ended(world: World, repository: GitRepository, **fields: Any) -> JsonObject:
    """Promote one Bundle into the environment; returns the status of its step once that has ended."""
    await start_controller(world)
    await world.apply(pipeline(repository, environments=[DEV], **fields), bundle(BUNDLE))
    step = await world.wait_for(PROMOTION_STEP, names.step_name(BUNDLE, DEV), a_step_has_ended)
    status: JsonObject = step["status"]
    return status


def push_tree(repository: GitRepository, lines: str, *, directory: str = f"environments/{DEV}") -> None:
    """Put a directory with these `git mktree` lines on main, in place of the one there."""
    tree = repository.git("mktree", "--missing", stdin=lines)
    for name in reversed(directory.split("/")):
        tree = repository.git("mktree", stdin=f"040000 tree {tree}\t{name}\n")
    commit = repository.git("commit-tree", tree, "-p", repository.head(), "-m", "attack")
    repository.git("update-ref", "refs/heads/main", commit)


def zeros(repository: GitRepository, size: int) -> str:
    """Write a blob that is large and was cheap to send; returns its id."""
    sparse = repository.path.parent / "zeros"
    with sparse.open("wb") as file:
        file.truncate(size)
    return repository.git("-c", "core.compression=1", "hash-object", "-w", str(sparse))


async def test_a_large_kustomization_is_refused_before_it_is_read(world: World, repository: GitRepository) -> None:
    repository.commit({FILE: "x: [" + "a," * 1_500_000 + "a]\n"})
    used = time.process_time()
    status = await ended(world, repository)
    assert status["state"] == "Failed"
    assert f"{FILE}: has 3,000,007 bytes; " in status["message"]
    assert time.process_time() - used < 20


COSTLY = {
    "values": ("x: [" + "a," * 10_001 + "a]\n", "more than 10,000 values"),
    "aliases": ("x: &a []\ny: [" + "*a," * 1_001 + "*a]\n", "more than 1,000 aliases"),
}


async def test_a_kustomization_that_is_costly_to_understand_is_refused(world: World, repository: GitRepository) -> None:
    contents = {name: f"{content}images: [{{name: {IMAGE}}}]\n" for name, (content, _) in COSTLY.items()}
    repository.commit({f"environments/{name}/kustomization.yaml": text for name, text in contents.items()})
    way = [environment(name, dependsOn=[]) for name in COSTLY]
    await start_controller(world)
    await world.apply(pipeline(repository, environments=way), bundle(BUNDLE))
    for name, (_, words) in COSTLY.items():
        step = await world.wait_for(PROMOTION_STEP, names.step_name(BUNDLE, name), a_step_has_ended)
        assert step["status"]["state"] == "Failed"
        assert f"environments/{name}/kustomization.yaml" in step["status"]["message"]
        assert words in step["status"]["message"]


async def test_a_chain_of_aliases_is_not_followed(world: World, repository: GitRepository) -> None:
    chain = "".join(f"  - &a{n}\n    - {f'*a{n - 1}' if n else 'end'}\n" for n in range(900))
    repository.commit({FILE: f"x:\n{chain}images:\n  - name: other\n    x: *a899\n"})
    status = await ended(world, repository)
    assert "steps" in status
    assert "RecursionError" not in str(status)
    assert f"- name: {IMAGE}" in repository.read(FILE)


async def test_a_file_that_grows_when_it_is_unpacked_takes_no_memory(world: World, repository: GitRepository) -> None:
    size = 48 * MIB
    blob = zeros(repository, size)
    push_tree(repository, f"100644 blob {blob}\tkustomization.yaml\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = await ended(world, repository)
    assert status["state"] == "Failed"
    assert f"{FILE}: has {size:,} bytes" in status["message"]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < size // 1024


async def test_a_directory_of_very_many_files_is_refused(world: World, repository: GitRepository) -> None:
    blob = repository.git("hash-object", "-w", "--stdin", stdin="x")
    push_tree(repository, "".join(f"100644 blob {blob}\t{n:0250d}\n" for n in range(17_000)))
    status = await ended(world, repository)
    assert status["state"] == "Failed"
    assert f"environments/{DEV}: has 4,726,000 bytes" in status["message"] or "4,194,304" in status["message"]


async def test_a_link_on_the_path_of_an_environment_is_refused(world: World, repository: GitRepository) -> None:
    link = repository.git("hash-object", "-w", "--stdin", stdin=PROD)
    prod = repository.git("rev-parse", f"main:environments/{PROD}")
    push_tree(repository, f"120000 blob {link}\t{DEV}\n040000 tree {prod}\t{PROD}\n", directory="environments")
    status = await ended(world, repository)
    assert status["state"] == "Failed"
    assert f"environments/{DEV}: {DEV} is a symbolic link" in status["message"]
    assert "Pipeline" in status["message"]


async def test_a_malformed_tree_is_named_as_damage(world: World, repository: GitRepository) -> None:
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin="100644 kustomization")
    outer = repository.git("mktree", stdin=f"040000 tree {tree}\t{DEV}\n")
    push_tree(repository, f"040000 tree {outer}\tx\n", directory="environments")
    await start_controller(world)
    way = pipeline(repository, environments=[{"name": DEV, "path": f"environments/x/{DEV}"}])
    await world.apply(way, bundle(BUNDLE))
    step = await world.wait_for(
        PROMOTION_STEP, names.step_name(BUNDLE, DEV), lambda step: "retry" in (step.get("status") or {})
    )
    assert "git fsck" in step["status"]["retry"]["lastError"]
