"""The diff of a promotion is one that Git applies, bounded, and harmless on a terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kardinal.git.diff import DIFF_LIMIT, unified
from kardinal.git.values import ChangedFile


def test_git_applies_it(tmp_path: Path) -> None:
    (tmp_path / "kept.yaml").write_bytes(b"a\nb\nc\n")
    (tmp_path / "gone.yaml").write_bytes(b"x\n")
    diff = unified(
        [
            ChangedFile("kept.yaml", b"a\nb\nc\n", b"a\nB\nc"),
            ChangedFile("gone.yaml", b"x\n", None),
            ChangedFile("new/made.yaml", None, b"y\n"),
        ]
    )
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    found = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.yaml")}
    assert found == {"kept.yaml": b"a\nB\nc", "new/made.yaml": b"y\n"}


def test_diff_is_bounded_and_counts_the_lines_left_out() -> None:
    diff = unified([ChangedFile("a.yaml", None, "é\n".encode() * 100_000)])
    assert len(diff.encode()) <= DIFF_LIMIT
    assert diff.endswith(" more lines are left out\n")


def test_content_and_names_of_files_do_not_steer_a_terminal() -> None:
    diff = unified([ChangedFile("a\x1b[2J.yaml", b"\x1b]0;owned\x07\n", "\u202eevil\tkept\n".encode())])
    assert not {"\x1b", "\x07", "\u202e"} & set(diff)
    assert "+evil\tkept\n" in diff


def test_binary_files_are_named() -> None:
    assert "Binary files a/x and b/x differ" in unified([ChangedFile("x", b"\0\1", b"\0\2")])
