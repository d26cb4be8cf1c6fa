"""Trees are extracted once, completely, and within bounds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pygit2
import pytest
from pygit2.enums import FileMode

from kardinal.git.errors import CommitNotFound, GitError
from kardinal.git.objects import Staging
from kardinal.git.revisions import check_published, find_revision
from kardinal.git.trees import TreeStore

AUTHOR = pygit2.Signature("Tester", "tester@example.com", 1_767_225_600, 0)


@pytest.fixture
def repository(tmp_path: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(tmp_path / "origin.git"), bare=True, initial_head="main")


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return TreeStore(tmp_path / "trees")


def tree_of(repository: pygit2.Repository, files: Mapping[str, tuple[FileMode, bytes]]) -> str:
    index = pygit2.Index()
    for path, (mode, content) in files.items():
        index.add(pygit2.IndexEntry(path, repository.create_blob(content), mode))
    return str(index.write_tree(repository))


def commit_of(repository: pygit2.Repository, ref: str | None, content: bytes, *parents: str) -> str:
    tree = tree_of(repository, {"f": (FileMode.BLOB, content)})
    return str(repository.create_commit(ref, AUTHOR, AUTHOR, "m", tree, list(parents)))


FILES = {
    "a.txt": (FileMode.BLOB, b"a"),
    "bin/run": (FileMode.BLOB_EXECUTABLE, b"#!/bin/sh\n"),
    "link": (FileMode.LINK, b"bin/run"),
}


def test_files_modes_and_links_are_extracted(repository: pygit2.Repository, store: TreeStore) -> None:
    tree = tree_of(repository, FILES)
    directory = store.extract(Staging(repository), tree)

    assert (directory / "a.txt").read_bytes() == b"a"
    assert os.access(directory / "bin" / "run", os.X_OK)
    assert not (directory / "a.txt").stat().st_mode & 0o333
    assert (directory / "link").resolve() == directory.resolve() / "bin" / "run"
    assert sorted(path.name for path in directory.parent.iterdir()) == [tree]


def test_a_changed_directory_is_extracted_again(repository: pygit2.Repository, tmp_path: Path) -> None:
    tree = tree_of(repository, FILES)
    directory = TreeStore(tmp_path).extract(Staging(repository), tree)
    for damage in ("changed", "added", "removed"):
        match damage:
            case "changed":
                (directory / "a.txt").unlink()
                (directory / "a.txt").write_bytes(b"b")
            case "added":
                (directory / "more").write_bytes(b"")
            case "removed":
                (directory / "bin" / "run").unlink()
        again = TreeStore(tmp_path).extract(Staging(repository), tree)

        assert again == directory
        assert sorted(os.listdir(directory)) == ["a.txt", "bin", "link"], damage
        assert (directory / "a.txt").read_bytes() == b"a"
        assert (directory / "bin" / "run").exists()


def test_several_stores_share_a_directory(repository: pygit2.Repository, tmp_path: Path) -> None:
    tree = tree_of(repository, {f"d{number}/f": (FileMode.BLOB, b"x") for number in range(200)})

    def extract(_: int) -> Path:
        return TreeStore(tmp_path / "trees").extract(Staging(pygit2.Repository(repository.path)), tree)

    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(extract, range(16)))

    assert found == {tmp_path / "trees" / tree}
    assert len(list((tmp_path / "trees" / tree).iterdir())) == 200
    assert [path.name for path in (tmp_path / "trees").iterdir()] == [tree]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"l": (FileMode.LINK, b"/etc/passwd")}, id="absolute"),
        pytest.param({"l": (FileMode.LINK, b"../x")}, id="parent"),
        pytest.param({"p/q/s": (FileMode.LINK, b"../.."), "t": (FileMode.LINK, b"p/q/s/..")}, id="through a link"),
    ],
)
def test_a_link_that_leads_out_is_refused(
    repository: pygit2.Repository, store: TreeStore, tmp_path: Path, files: Mapping[str, tuple[FileMode, bytes]]
) -> None:
    with pytest.raises(GitError, match="leads out of its repository"):
        store.extract(Staging(repository), tree_of(repository, files))
    assert list((tmp_path / "trees").iterdir()) == []


@pytest.mark.parametrize("name", ["..", ".git", ".GIT"])
def test_a_name_that_leads_elsewhere_is_refused(repository: pygit2.Repository, store: TreeStore, name: str) -> None:
    blob = repository.create_blob(b"x")
    raw = b"100644 %b\0%b" % (name.encode(), blob.raw)
    tree = str(repository.odb.write(pygit2.enums.ObjectType.TREE, raw))
    with pytest.raises(GitError, match="may not be called"):
        store.extract(Staging(repository), tree)


def test_a_tree_of_very_many_files_is_refused(repository: pygit2.Repository, store: TreeStore) -> None:
    blob = repository.create_blob(b"x")
    raw = b"".join(b"100644 f%05d\0%b" % (number, blob.raw) for number in range(20_001))
    tree = str(repository.odb.write(pygit2.enums.ObjectType.TREE, raw))
    with pytest.raises(GitError, match="20,001 files"):
        store.extract(Staging(repository), tree)


def test_a_version_is_a_tag_before_a_branch_or_a_commit(repository: pygit2.Repository) -> None:
    first = commit_of(repository, "refs/heads/main", b"1")
    second = commit_of(repository, "refs/heads/main", b"2", first)
    repository.references.create("refs/heads/v1", second)
    repository.create_tag("v1", first, pygit2.enums.ObjectType.COMMIT, AUTHOR, "annotated")

    def found(version: str) -> str:
        return find_revision(repository, version, url="u").commit

    assert [found(version) for version in ("v1", "main", first, first[:9], "")] == [first, second, first, first, second]
    assert find_revision(repository, "", url="u").branch == "main"
    with pytest.raises(CommitNotFound, match="no branch, tag or commit nope"):
        found("nope")


def test_a_commit_on_no_branch_or_tag_is_refused(repository: pygit2.Repository) -> None:
    first = commit_of(repository, "refs/heads/main", b"1")
    loose = commit_of(repository, None, b"2", first)
    repository.references.create("refs/pull/1/head", loose)

    check_published(repository, first, url="u")
    with pytest.raises(CommitNotFound, match="on a branch or tag"):
        check_published(repository, loose, url="u")
    with pytest.raises(CommitNotFound, match="on a branch or tag"):
        find_revision(repository, loose, url="u")
