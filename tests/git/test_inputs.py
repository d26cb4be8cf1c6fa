"""Inputs: an edit of one repository reads the tree of another one, which need not have its files yet."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kardinal.git import GitCredentials, GitRunner, InvalidBranchName, Repositories, Repository, TagNotFound
from kardinal.git.errors import CacheFull
from kardinal.git.inputs import InputIncomplete, with_inputs
from kardinal.tree.edit import Edit, EditError, Tree
from tests.git.conftest import Git, message, setting
from tests.git.test_mirrors import fetches
from tests.support.clock import VirtualClock
from tests.support.smart_server import PASSWORD, USER, SmartServer

FILES = {f"bases/{name}": f"{name}\n" for name in ("a.yaml", "run.sh", "model.bin", "deep/b.yaml", "deep/er/c.txt")}


@pytest.fixture
def platform(tmp_path: Path) -> Git:
    """Return a second bare repository, which leaves out files."""
    directory = tmp_path / "platform.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(directory)], check=True)
    git = Git(directory)
    git("config", "uploadpack.allowFilter", "true")
    git.commit(FILES)
    return git


@pytest.fixture
def second(repositories: Repositories, server: SmartServer, platform: Git) -> Repository:
    """`platform`, as it is seen over HTTPS."""
    return repositories.open(f"{server.url}/platform.git", GitCredentials(USER, PASSWORD))


def reading(beside: Callable[[Tree], Tree]) -> Edit:
    """Return an edit that copies every file of an input."""

    def below(tree: Tree, directory: str) -> dict[str, bytes | None]:
        found: dict[str, bytes | None] = {}
        for name in tree.entries(directory):
            path = f"{directory}/{name}"
            found |= below(tree, path) if tree.is_dir(path) else {f"copied/{path}": tree.read(path)}
        return found

    return lambda tree: below(beside(tree), "bases")


async def opened(second: Repository, commit: str) -> Edit:
    return reading(await second.input(commit, name="platform", branch="main", tag=None))


async def test_files_that_an_input_lacks_are_fetched_directory_by_directory(
    repository: Repository, second: Repository, server: SmartServer, platform: Git
) -> None:
    edit = await opened(second, platform("rev-parse", "main"))
    base = (await repository.head("main")).commit
    before = fetches(server)
    plan = await with_inputs(lambda: repository.plan(base, edit))
    assert {change.path: change.after for change in plan.changes} == {
        f"copied/{path}": text.encode() for path, text in FILES.items()
    }
    assert fetches(server) - before <= 3


async def test_missing_input_does_not_block_other_promotions(
    remote: Repository, second: Repository, platform: Git, bare: Git
) -> None:
    """The edits of a batch share one push, and not their inputs."""
    edit = await opened(second, platform("rev-parse", "main"))
    await remote.head("main")
    lacking = asyncio.create_task(remote.land("main", edit, message("dev")))
    fine = asyncio.create_task(remote.land("main", setting("staging", b"x: 1\n"), message("staging")))
    with pytest.raises(InputIncomplete):
        await lacking
    assert (await fine).changed
    del lacking
    landed = await with_inputs(lambda: remote.land("main", edit, message("dev")))
    assert landed.changed
    assert bare("show", "main:copied/bases/run.sh") == "run.sh"
    assert bare("show", "main:environments/staging/kustomization.yaml") == "x: 1"


async def test_a_mirror_of_an_input_that_was_deleted_is_made_again(
    repository: Repository, second: Repository, platform: Git, tmp_path: Path
) -> None:
    edit = await opened(second, platform("rev-parse", "main"))
    base = (await repository.head("main")).commit
    for mirror in (tmp_path / "cache").glob("*.git"):
        shutil.rmtree(mirror)
    plan = await with_inputs(lambda: repository.plan(base, edit))
    assert len(plan.changes) == len(FILES)


async def test_an_input_that_stays_unreadable_is_worth_another_attempt_later(
    repository: Repository, repositories: Repositories, platform: Git
) -> None:
    local = repositories.open(str(platform.directory))
    edit = await opened(local, platform("rev-parse", "main"))
    base = (await repository.head("main")).commit
    for path in platform.directory.glob("objects/??/*"):
        path.unlink()
    with pytest.raises(Exception, match="can not be read") as caught:
        await with_inputs(lambda: repository.plan(base, edit))
    assert getattr(caught.value, "transient", False)


async def test_a_tag_is_the_commit_it_stands_for(second: Repository, platform: Git) -> None:
    commit = platform("rev-parse", "main")
    platform("tag", "-a", "outer", "-m", "x", commit)
    platform("tag", "-a", "outermost", "-m", "x", "outer")
    platform("tag", "light", commit)
    for name in ("light", "outer", "outermost"):
        assert await second.tagged(name) == commit
    platform("tag", "tree", f"{commit}^{{tree}}")
    with pytest.raises(TagNotFound, match="tag tree stands for no commit"):
        await second.tagged("tree")
    with pytest.raises(TagNotFound, match="has no tag absent"):
        await second.tagged("absent")
    with pytest.raises(InvalidBranchName):
        await second.tagged("../heads/main")


async def test_a_tag_that_has_moved_leaves_what_was_read_from_it(
    repository: Repository, second: Repository, platform: Git
) -> None:
    first = platform("rev-parse", "main")
    platform("tag", "v1", first)
    assert await second.tagged("v1") == first
    platform("tag", "-f", "v1", platform.commit({"x": "y"}, parent=first))
    beside = await second.input(first, name="platform", branch=None, tag="v1")
    base = (await repository.head("main")).commit
    assert (await with_inputs(lambda: repository.plan(base, reading(beside)))).changes
    assert await second.tagged("v1") != first


async def test_all_inputs_of_an_edit_share_its_limit(
    repository: Repository, repositories: Repositories, platform: Git
) -> None:
    platform.commit({"large": "x" * (4 << 20)}, branch="large")
    local = repositories.open(str(platform.directory))
    head = platform("rev-parse", "large")
    besides = [await local.input(head, name=name, branch="large", tag=None) for name in ("one", "two")]
    read = list[int]()

    def edit(tree: Tree) -> dict[str, bytes]:
        for beside in besides:
            opened = beside(tree)
            read.extend(len(opened.read("large") or b"") for _ in range(10))
        return {}

    with pytest.raises(EditError, match="two:/large: not looked at: one edit reads at most 67,108,864 bytes in all"):
        await repository.plan((await repository.head("main")).commit, edit)
    assert 12 <= len(read) < 16


async def test_an_edit_whose_repositories_do_not_fit_into_the_cache_says_so(
    bare: Git, platform: Git, server: SmartServer, tmp_path: Path, runner: GitRunner
) -> None:
    """Refuse the second of two mirrors that are held, rather than delete one for the other by turns."""
    for git in (bare, platform):
        large = os.urandom(50_000).hex()
        git("update-ref", "refs/heads/main", git("commit-tree", "main^{tree}", "-p", "main", "-m", large))
    small = Repositories(tmp_path / "small", runner=runner, clock=VirtualClock(), allow_local=False, cache_size=120_000)
    one, two = (
        small.open(f"{server.url}/{name}.git", GitCredentials(USER, PASSWORD)) for name in ("gitops", "platform")
    )
    release = two.hold()
    await opened(two, platform("rev-parse", "main"))
    with pytest.raises(CacheFull, match="--git-cache-max-bytes"):
        await one.head("main")
    release()
    assert (await one.head("main")).commit == bare("rev-parse", "main")
    await small.close()
