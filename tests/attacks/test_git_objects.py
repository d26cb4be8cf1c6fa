"""Attacks by objects of a repository that are small to send: directories, commits and histories of any size."""

from __future__ import annotations

import subprocess
import tracemalloc
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from kardinal.git import GitError, Repository
from kardinal.tree.edit import Tree
from tests.git.conftest import Git, bare, message, remote, repositories, repository, runner, server, setting

__all__ = ["bare", "remote", "repositories", "repository", "runner", "server"]

T = TypeVar("T")
MIB = 1 << 20
FILE = "environments/dev/kustomization.yaml"


def write(git: Git, kind: str, content: bytes) -> str:
    """Return the id of an object with this content, whatever it is."""
    command = ["git", "-C", str(git.directory), "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout.decode().strip()


def directory(git: Git, entries: int) -> str:
    """Return a directory of many entries that are one file."""
    blob = bytes.fromhex(git("hash-object", "-w", "--stdin", input="x"))
    return write(git, "tree", b"".join(b"100644 %07d\0%b" % (number, blob) for number in range(entries)))


def commit(git: Git, *lines: str, parent: str = "", branch: str = "main") -> str:
    """Put a commit of a directory with these `git mktree` lines on a branch."""
    tree = git("mktree", "--missing", input="".join(f"{line}\n" for line in lines))
    made = git("commit-tree", tree, *(("-p", parent) if parent else ()), "-m", "attack")
    git("update-ref", f"refs/heads/{branch}", made)
    return made


def environment(git: Git, *beside: str) -> str:
    """Return the line of a directory `environments` whose dev has these entries beside its kustomization."""
    blob = git("hash-object", "-w", "--stdin", input="images: []\n")
    dev = git("mktree", input="".join(f"{line}\n" for line in (f"100644 blob {blob}\tkustomization.yaml", *beside)))
    above = git("mktree", input=f"040000 tree {dev}\tdev\n")
    return f"040000 tree {above}\tenvironments"


@contextmanager
def at_most(size: int) -> Iterator[None]:
    """Fail where more memory than that is used at once."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size, f"{peak / MIB:.0f} MiB were in use"


async def refused(operation: Awaitable[T]) -> str:
    """Return why an operation is refused."""
    with pytest.raises(GitError) as raised:
        await operation
    assert not raised.value.transient
    return str(raised.value)


async def test_a_directory_of_very_many_entries_beside_an_environment_is_not_read(
    remote: Repository, bare: Git
) -> None:
    """Promote in a repository of some megabytes, where what lies beside the file would take 100 and more."""
    bare("config", "uploadpack.allowFilter", "true")
    commit(bare, environment(bare, f"040000 tree {directory(bare, 300_000)}\tvendor"))

    def edit(tree: Tree) -> dict[str, bytes]:
        return {FILE: (tree.read(FILE) or b"") + b"# promoted\n"}

    with at_most(24 * MIB):
        landed = await remote.land("main", edit, message("dev"))
    assert landed.changed
    assert bare("show", f"main:{FILE}").endswith("# promoted")


async def test_a_directory_that_is_too_large_is_refused_by_its_size(repository: Repository, bare: Git) -> None:
    made = commit(bare, f"040000 tree {directory(bare, 150_000)}\tvendor")
    with at_most(8 * MIB):
        said = await refused(repository.inspect(made, lambda tree: tree.entries("vendor")))
    assert "has 5,250,000 bytes; at most 4,194,304 are read" in said


async def test_directories_of_too_many_entries_in_all_are_refused(repository: Repository, bare: Git) -> None:
    others = [directory(bare, 40_000 + number) for number in range(3)]
    made = commit(bare, *(f"040000 tree {tree}\tvendor-{number}" for number, tree in enumerate(others)))
    said = await refused(repository.inspect(made, lambda tree: list(tree.walk(""))))
    assert "more than 100,000 files and directories in all" in said


async def test_directories_within_directories_end_at_a_depth(repository: Repository, bare: Git) -> None:
    made = bare.commit({f"{'d/' * 300}x": "x"}, parent="refs/heads/main^0")
    said = await refused(repository.inspect(made, lambda tree: list(tree.walk(""))))
    assert "nested deeper than 100 directories" in said


async def test_a_commit_that_grows_when_it_is_unpacked_is_refused_by_its_size(
    repository: Repository, bare: Git
) -> None:
    tree = bare("rev-parse", "main^{tree}")
    first = bare("rev-parse", "main")
    who = "somebody <somebody@example.org> 1700000000 +0000"
    head = f"tree {tree}\nparent {first}\nauthor {who}\ncommitter {who}\n\n"
    large = write(bare, "commit", head.encode() + bytes(8 * MIB))
    bare("update-ref", "refs/heads/main", bare("commit-tree", tree, "-p", large, "-m", "on top"))
    with at_most(4 * MIB):
        assert "has 8,388,8" in await refused(repository.contains("main", first))
        assert "at most 1,048,576 are read" in await refused(repository.log("main", 10))


@pytest.mark.parametrize("time", ["253402300800", "9" * 18, "9" * 400, "-99999999999999"])
async def test_a_commit_of_a_time_beyond_all_dates_is_read(repository: Repository, bare: Git, time: str) -> None:
    first = bare("rev-parse", "main")
    who = f"somebody <somebody@example.org> {time} +0000"
    head = f"tree {bare('rev-parse', 'main^{tree}')}\nparent {first}\nauthor {who}\ncommitter {who}\n\n"
    bare("update-ref", "refs/heads/main", write(bare, "commit", f"{head}late\n".encode()))
    landed = await repository.land("main", setting("dev", b"v2\n"), message("dev"))
    assert [found.subject for found in await repository.log("main", 2)] == ["promote app-1 to dev", "late"]
    assert await repository.find("main", message("dev").trailers) == landed.commit
    assert await repository.contains("main", first)


async def test_unchanged_files_are_not_read_by_a_merge(repository: Repository, bare: Git) -> None:
    """Merge where a directory that both sides have is not even there."""
    absent = f"040000 tree {'1' * 40}\tvendor"
    files = bare("ls-tree", "main").splitlines()
    origin = commit(bare, *files, absent, parent=bare("rev-parse", "main"))
    proposed = await repository.propose(
        "kardinal/app/dev", base="main", edit=setting("dev", b"v2\n"), message=message("dev")
    )
    await repository.land("main", setting("prod", b"v3\n"), message("prod"))
    assert await repository.conflicts("kardinal/app/dev", base="main") == ()
    merged = await repository.merge("main", proposed.commit)
    assert bare("show", f"{merged.commit}:{FILE}") == "v2"
    assert bare("show", f"{merged.commit}:environments/prod/kustomization.yaml") == "v3"
    assert bare("rev-list", "--count", f"{origin}..{merged.commit}") == "2"
