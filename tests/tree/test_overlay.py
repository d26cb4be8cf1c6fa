"""A tree with changes on top reads like a tree that has them."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest

from kardinal.git.objects import Staging
from kardinal.git.tree import TreeView, apply
from kardinal.tree.edit import Changes, EditError, Tree
from kardinal.tree.overlay import Overlay

BASE = {
    "a/one.yaml": b"1",
    "a/b/two.yaml": b"2",
    "c/three.yaml": b"3",
}


@pytest.fixture
def repository(tmp_path: Path) -> pygit2.Repository:
    return pygit2.init_repository(str(tmp_path), bare=True)


def base(repository: pygit2.Repository) -> tuple[Staging, str]:
    staging = Staging(repository)
    return staging, apply(staging, staging.add_tree({}), dict(BASE))


CHANGES: list[Changes] = [
    {"a/one.yaml": b"changed"},
    {"a/one.yaml": None},
    {"a/b/two.yaml": None},
    {"a/b/two.yaml": None, "a/one.yaml": None},
    {"new/deep/file": b"x"},
    {"./a//one.yaml": b"spelt otherwise"},
    {"absent": None},
    {"c/three.yaml": None, "c/four.yaml": b"4"},
]
PATHS = ["", "a", "a/one.yaml", "a/b", "a/b/two.yaml", "c", "c/three.yaml", "c/four.yaml", "new", "new/deep", "absent"]


def facts(tree: Tree, path: str) -> tuple[object, ...]:
    return tree.read(path), tree.size(path), tree.is_dir(path), tree.entries(path)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_an_overlay_reads_like_the_tree_with_the_changes_made(repository: pygit2.Repository, changes: Changes) -> None:
    staging, tree = base(repository)
    overlay = Overlay(TreeView.for_edit(staging, tree))
    overlay.apply(changes)
    made = TreeView.for_edit(staging, apply(staging, tree, changes))
    assert {path: facts(overlay, path) for path in PATHS} == {path: facts(made, path) for path in PATHS}
    for directory in ("a", "c", "new"):
        if made.is_dir(directory):
            assert overlay.within(directory).entries("") == made.within(directory).entries("")
        else:
            with pytest.raises(EditError, match="no such directory"):
                overlay.within(directory)


def test_ids_are_equal_exactly_where_the_content_is(repository: pygit2.Repository) -> None:
    staging, tree = base(repository)
    before = TreeView.for_edit(staging, tree)
    overlay = Overlay(TreeView.for_edit(staging, tree))
    overlay.apply({"a/one.yaml": b"changed"})
    same = {path for path in PATHS if overlay.identify(path) == before.identify(path)}
    assert same == {"a/b", "a/b/two.yaml", "c", "c/three.yaml", "c/four.yaml", "new", "new/deep", "absent"}


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a/.git/config", "a\\b"])
def test_a_change_outside_the_repository_is_refused(repository: pygit2.Repository, path: str) -> None:
    staging, tree = base(repository)
    with pytest.raises(EditError):
        Overlay(TreeView.for_edit(staging, tree)).apply({path: b"x"})


def test_too_many_changes_are_refused(repository: pygit2.Repository) -> None:
    staging, tree = base(repository)
    with pytest.raises(EditError, match="at most 5,000 files"):
        Overlay(TreeView.for_edit(staging, tree)).apply({f"a/{number}": b"" for number in range(5001)})
    with pytest.raises(EditError, match="at most 67,108,864 bytes"):
        Overlay(TreeView.for_edit(staging, tree)).apply({f"a/{number}": bytes(1 << 20) for number in range(65)})
