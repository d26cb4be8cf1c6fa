"""Paths name one value, are read back as they are written, and are refused where they go wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.steps.document_path import DocumentPath, Index, Item, Key, PathSyntaxError, parse_path

text = st.text(min_size=1, max_size=8)
segments = st.builds(Key, text) | st.builds(Item, text, st.text(max_size=8)) | st.builds(Index, st.integers(0, 999_999))


@pytest.mark.parametrize(
    ("written", "segments"),
    [
        ("image.tag", (Key("image"), Key("tag"))),
        ("items[0].x", (Key("items"), Index(0), Key("x"))),
        ("[0][1]", (Index(0), Index(1))),
        ("a[name=app].image", (Key("a"), Item("name", "app"), Key("image"))),
        ('a."b.c".d', (Key("a"), Key("b.c"), Key("d"))),
        ('"a\\"b\\\\"', (Key('a"b\\'),)),
        ('a[example.com/x="]=["]', (Key("a"), Item("example.com/x", "]=["))),
        ("a[name=]", (Key("a"), Item("name", ""))),
        ("a/b c.d-e", (Key("a/b c"), Key("d-e"))),
    ],
)
def test_a_path_names_keys_and_items(written: str, segments: tuple[Key | Index | Item, ...]) -> None:
    assert parse_path(written) == DocumentPath(segments)
    assert parse_path(str(parse_path(written))) == DocumentPath(segments)


@given(st.lists(segments, min_size=1, max_size=5).map(lambda found: DocumentPath(tuple(found))))
def test_a_path_is_read_as_it_is_written(path: DocumentPath) -> None:
    assert parse_path(str(path)) == path


@pytest.mark.parametrize(
    ("written", "place"),
    [
        (".a", "character 1"),
        ("a.", "character 2"),
        ("a..b", "character 2"),
        ("a.[0]", "character 2"),
        ("a[0]b", "character 5"),
        ("a[", "character 2"),
        ("a[-1]", "character 2"),
        ("a[name]", "character 2"),
        ('a."b', "character 2"),
        ("", "an empty path"),
        ("a" + ".a" * 64, "64 segments"),
    ],
)
def test_a_mistake_is_told_with_its_place(written: str, place: str) -> None:
    with pytest.raises(PathSyntaxError, match=place):
        parse_path(written)
