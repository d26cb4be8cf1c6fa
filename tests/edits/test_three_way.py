"""Two changes of one text, merged line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.edits.three_way import merge_text

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines).encode()
)


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("abcde", "Abcde", "abcdE", "AbcdE"),
        ("abc", "abc", "abxc", "abxc"),
        ("abc", "abxc", "abc", "abxc"),
        ("abc", "xbc", "xbc", "xbc"),
        ("abcd", "acd", "abc", "ac"),
        ("abc", "xbc", "ybc", None),
        ("abc", "ac", "aBc", None),
        ("", "x", "y", None),
        ("axxxxb", "axxxb", "axxxb", "axxxb"),
        # Each side takes out one of the equal lines and changes another place: it is the same change.
        ("abxxxxcdef", "Abxxxcdef", "abxxxcdeF", "AbxxxcdeF"),
    ],
)
def test_changes_of_different_lines_are_both_kept(base: str, ours: str, theirs: str, merged: str | None) -> None:
    one, two, three = (b"".join(f"{line}\n".encode() for line in text) for text in (base, ours, theirs))
    wanted = None if merged is None else b"".join(f"{line}\n".encode() for line in merged)
    assert merge_text(one, two, three) == wanted


@given(TEXTS, TEXTS)
def test_a_change_of_one_side_is_taken_over(base: bytes, changed: bytes) -> None:
    assert merge_text(base, base, changed) == merge_text(base, changed, base) == changed
    assert merge_text(base, changed, changed) == changed


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_may_be_exchanged(base: bytes, ours: bytes, theirs: bytes) -> None:
    assert merge_text(base, ours, theirs) == merge_text(base, theirs, ours)


@given(TEXTS, TEXTS, TEXTS)
def test_changes_far_from_each_other_never_conflict(base: bytes, ours: bytes, theirs: bytes) -> None:
    between = b"one\ntwo\nthree\n"
    assert merge_text(base + between + base, ours + between + base, base + between + theirs) == ours + between + theirs


def test_line_ends_are_content_and_binary_files_are_not_merged() -> None:
    assert merge_text(b"a\r\nb\r\n", b"A\r\nb\r\n", b"a\r\nB\r\n") is None
    assert merge_text(b"a\r\nx\r\nb\r\n", b"A\r\nx\r\nb\r\n", b"a\r\nx\r\nB\r\n") == b"A\r\nx\r\nB\r\n"
    assert merge_text(b"a\0\nx\nb\n", b"A\0\nx\nb\n", b"a\0\nx\nB\n") is None


def test_a_file_of_equal_lines_is_aligned_in_one_pass() -> None:
    """A quadratic alignment would take hours."""
    lines = b"x\n" * 100_000
    assert merge_text(lines, lines + b"end\n", b"start\n" + lines) == b"start\n" + lines + b"end\n"
