"""Paths name one value, are read back as they are written, and are refused where they go wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.edits.yaml.document_path import DocumentPath, Item, ListIndex, MappingKey, PathSyntaxError, parse_path

text = st.text(min_size=1, max_size=8)
segments = (
    st.builds(MappingKey, text)
    | st.builds(Item, text, st.text(max_size=8))
    | st.builds(ListIndex, st.integers(0, 999_999))
)


@pytest.mark.parametrize(
    ("written", "segments"),
    [
        ("image.tag", (MappingKey("image"), MappingKey("tag"))),
        ("items[0].x", (MappingKey("items"), ListIndex(0), MappingKey("x"))),
        ("[0][1]", (ListIndex(0), ListIndex(1))),
        ("a[name=app].image", (MappingKey("a"), Item("name", "app"), MappingKey("image"))),
        ('a."b.c".d', (MappingKey("a"), MappingKey("b.c"), MappingKey("d"))),
        ('"a\\"b\\\\"', (MappingKey('a"b\\'),)),
        ('a[example.com/x="]=["]', (MappingKey("a"), Item("example.com/x", "]=["))),
        ("a[name=]", (MappingKey("a"), Item("name", ""))),
        ("a/b c.d-e", (MappingKey("a/b c"), MappingKey("d-e"))),
    ],
)
def test_a_path_names_keys_and_items(written: str, segments: tuple[MappingKey | ListIndex | Item, ...]) -> None:
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
