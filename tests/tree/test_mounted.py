"""A tree below a name of another one, as a chart of an input beside the values of an environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardinal.tree.edit import EditError
from kardinal.tree.overlay import Mounted
from tests.support.trees import Files


def test_each_path_is_of_one_tree(tmp_path: Path) -> None:
    own = Files(tmp_path / "own", {"/a/x": "own", "/charts/web/x": "own chart"}).view()
    other = Files(tmp_path / "other", {"/charts/web/x": "other"}).view()
    tree = Mounted(own, at="in:", mounted=other)
    assert [tree.read("charts/web/x"), tree.read("in:/charts/web/x")] == [b"own chart", b"other"]
    assert tree.entries("") == ["a", "charts"]
    assert tree.entries("in:") == ["charts"]
    assert tree.entries("in:/charts/web") == ["x"]
    assert tree.is_dir("in:/charts")
    assert not tree.is_dir("in:/a")
    assert tree.within("in:/charts").read("web/x") == b"other"
    assert tree.size("in:/charts/web/x") == 5
    assert tree.identify("in:/charts/web") == other.identify("charts/web") != tree.identify("charts/web")
    with pytest.raises(EditError):
        tree.read("in:/../a/x")
