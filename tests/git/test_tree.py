"""Edits see the tree they are given, and nothing outside it."""

from __future__ import annotations

import pytest

from kardinal.git import Repository
from kardinal.tree.edit import EditError, Tree
from tests.git.conftest import Git, message


def with_links(bare: Git) -> None:
    """Put links, an executable and a submodule beside the files that are there."""
    blob = bare("hash-object", "-w", "--stdin", input="#!/bin/sh\n")
    links = {
        "environments/dev/inside": "../prod/kustomization.yaml",
        "environments/dev/up": "../../README.md",
        "environments/dev/out": "../../../outside",
        "environments/dev/absolute": "/etc/passwd",
        "environments/dev/loop": "loop",
        "environments/linked": "dev",
    }
    lines = [f"120000 blob {bare('hash-object', '-w', '--stdin', input=to)}\t{path}" for path, to in links.items()]
    lines += [f"100755 blob {blob}\trun.sh", f"160000 commit {bare('rev-parse', 'main')}\tvendored"]
    bare.environment["GIT_INDEX_FILE"] = str(bare.directory / "index.scratch")
    bare("read-tree", "main")
    bare("update-index", "--add", "--index-info", input="\n".join(lines) + "\n")
    tree = bare("write-tree")
    del bare.environment["GIT_INDEX_FILE"]
    bare("update-ref", "refs/heads/main", bare("commit-tree", tree, "-p", "main", "-m", "links"))


async def test_a_reader_sees_files_and_directories(repository: Repository) -> None:
    def look(tree: Tree) -> None:
        assert tree.entries("environments") == ["dev", "prod", "staging"]
        assert tree.entries("") == ["README.md", "base", "environments"]
        assert tree.entries("nowhere") == tree.entries("README.md") == []
        assert tree.is_dir("environments/dev")
        assert not tree.is_dir("README.md")
        assert tree.read("README.md") == tree.read("./README.md") == b"hello\n"
        assert tree.read("nowhere") is tree.read("environments") is tree.read("README.md/x") is None

    await repository.inspect((await repository.head("main")).commit, look)


async def test_links_are_followed_inside_the_tree_and_refused_when_they_leave(
    repository: Repository, bare: Git
) -> None:
    with_links(bare)

    def look(tree: Tree) -> None:
        assert tree.read("environments/dev/inside") == tree.read("environments/prod/kustomization.yaml")
        assert tree.read("environments/linked/up") == b"hello\n"
        assert tree.is_dir("environments/linked")
        for path in ("out", "absolute", "loop"):
            with pytest.raises(EditError, match="leads out of the repository"):
                tree.read(f"environments/dev/{path}")
        narrow = tree.within("environments/dev")
        assert narrow.read("kustomization.yaml") == tree.read("environments/dev/kustomization.yaml")
        for path in ("inside", "up"):
            with pytest.raises(EditError, match="leads out of environments/dev") as caught:
                narrow.read(path)
            assert caught.value.path == f"environments/dev/{path}"
        with pytest.raises(EditError, match="environments/qa: no such directory"):
            tree.within("environments/qa")

    await repository.inspect((await repository.head("main")).commit, look)


async def test_a_thousand_files_of_one_directory_are_written_at_once(repository: Repository, bare: Git) -> None:
    files = {f"rendered/{number}.yaml": b"x: %d\n" % number for number in range(1000)}
    await repository.land("main", lambda tree: files, message("dev"))
    listed = bare("ls-tree", "-r", "--name-only", "main", "rendered").splitlines()
    assert set(listed) == files.keys()


async def test_a_file_takes_the_place_of_a_directory_and_the_other_way_round(repository: Repository, bare: Git) -> None:
    emptied = dict.fromkeys(bare("ls-tree", "-r", "--name-only", "main", "environments/dev").splitlines())
    changes = {**emptied, "environments/dev": b"a file", "README.md": None, "README.md/text": b"below"}
    await repository.land("main", lambda tree: changes, message("dev"))
    assert bare("cat-file", "-p", "main:environments/dev") == "a file"
    assert bare("cat-file", "-p", "main:README.md/text") == "below"


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x", "a/../../x", "a/..", "", ".git/config", "a/.GIT/x", "a\\..\\x", "a\0b"]
)
async def test_a_path_that_is_not_inside_the_tree_can_not_be_written(
    repository: Repository, bare: Git, path: str
) -> None:
    before = bare("rev-parse", "main")
    with pytest.raises(EditError):
        await repository.land("main", lambda tree: {path: b"x"}, message("dev"))
    assert bare("rev-parse", "main") == before


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("environments/dev/inside", "symbolic link"),
        ("environments/linked/kustomization.yaml", "symbolic link"),
        ("environments/dev", "not a file"),
        ("vendored", "not a file"),
        ("README.md/x", "not a directory"),
    ],
)
async def test_write_to_a_non_file_is_refused(repository: Repository, bare: Git, path: str, reason: str) -> None:
    with_links(bare)
    with pytest.raises(EditError, match=reason) as caught:
        await repository.land("main", lambda tree: {path: b"x"}, message("dev"))
    assert caught.value.path == path


async def test_names_that_contain_dots_are_names(repository: Repository, bare: Git) -> None:
    await repository.land("main", lambda tree: {"a..b/...": b"x"}, message("dev"))
    assert bare("show", "main:a..b/...") == "x"


async def test_a_file_keeps_its_mode_and_the_tree_its_order(repository: Repository, bare: Git) -> None:
    with_links(bare)
    files = {"run.sh": b"#!/bin/bash\n", "run": b"x", "run/": b"", "environments-1": b"x", "environments.x/y": b"x"}
    files.pop("run/")
    await repository.land("main", lambda tree: files, message("dev"))
    assert bare("ls-tree", "main", "run.sh").startswith("100755")
    assert bare("ls-tree", "main", "vendored").startswith("160000")
    bare("fsck", "--strict")


async def test_a_name_that_is_not_utf_8_survives(repository: Repository, bare: Git) -> None:
    blob = bare("hash-object", "-w", "--stdin", input="x")
    tree = bare("mktree", "-z", input=f"100644 blob {blob}\tcaf\udce9\0")
    bare("update-ref", "refs/heads/odd", bare("commit-tree", tree, "-m", "odd"))
    await repository.land("odd", lambda tree: {"b": b"x"}, message("dev"))
    assert bare("ls-tree", "--name-only", "odd") == 'b\n"caf\\351"'
