"""YAML and JSON as any program may write it: the value asked for changes, and not one byte beside it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kardinal.edits.yaml.document_path import DocumentPath, ListIndex, MappingKey
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.yaml_scalar import Scalar
from kardinal.objects.errors import KardinalError
from tests.fuzz.inputs import INPUTS, JSON, fuzzed, texts
from tests.fuzz.test_kustomizations import files

fewer = settings(fuzzed, max_examples=max(1, INPUTS // 4))
"""For tests that read and write a whole document several times."""

Segments = tuple[MappingKey | ListIndex, ...]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
documents = st.dictionaries(texts, JSON, min_size=1, max_size=4)
styles = st.fixed_dictionaries(
    {
        "default_flow_style": st.sampled_from([None, True, False]),
        "default_style": st.sampled_from([None, "'", '"', "|", ">"]),
        "indent": st.integers(2, 6),
        "width": st.sampled_from([20, 200]),
        "allow_unicode": st.booleans(),
        "line_break": st.sampled_from(["\n", "\r\n"]),
        "explicit_start": st.booleans(),
        "sort_keys": st.booleans(),
    }
)


def scalar_paths(value: Any, at: Segments = ()) -> Iterator[Segments]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from scalar_paths(inner, (*at, MappingKey(key)))
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from scalar_paths(inner, (*at, ListIndex(position)))
    else:
        yield at


def changed(document: Any, path: Segments, value: Scalar) -> Any:
    after = holder = copy.deepcopy(document)
    for segment in path[:-1]:
        holder = holder[segment.name if isinstance(segment, MappingKey) else segment.position]
    last = path[-1]
    holder[last.name if isinstance(last, MappingKey) else last.position] = value
    return after


def one_place_differs(before: str, after: str, old: str) -> bool:
    """Return whether the texts are equal but for one part, which was no longer than the old value can be."""
    start = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(map(len, (before, after)))
    )
    most = min(len(before), len(after)) - start
    end = next((i for i in range(most) if before[-1 - i] != after[-1 - i]), most)
    return len(before) - start - end <= len(old)


@st.composite
def edits(draw: st.DrawFn) -> tuple[Any, Segments, Scalar]:
    document = draw(documents)
    paths = list(scalar_paths(document))
    assume(paths)
    return document, draw(st.sampled_from(paths)), draw(scalars)


def edited_or_refused(content: bytes, update: FieldUpdate, *, json: bool) -> bytes | KardinalError:
    try:
        return DocumentFile.parse(content, json=json).edited([update])
    except KardinalError as error:
        return error


@fewer
@given(edit=edits(), style=styles, comment=st.booleans())
def test_only_the_value_of_a_yaml_file_changes(
    edit: tuple[Any, Segments, Scalar], style: dict[str, Any], comment: bool
) -> None:
    document, path, value = edit
    text = (
        ("# kept\n" if comment else "")
        + yaml.dump(document, Dumper=yaml.CSafeDumper, **style)
        + ("# kept too\n" if comment else "")
    )
    assume(yaml.safe_load(text) == document)
    file = DocumentFile.parse(text.encode())
    node = file.find(DocumentPath(path))
    # A tag belongs to the old value: such a value is refused.
    assume(text[node.start_mark.index : node.start_mark.index + 1] != "!")
    after = file.edited([FieldUpdate(path=DocumentPath(path), value=value)]).decode()
    assert yaml.safe_load(after) == changed(document, path, value)
    assert one_place_differs(text, after, text[node.start_mark.index : node.end_mark.index])


@fewer
@given(edit=edits(), indent=st.sampled_from([None, 1, 4, "\t"]), ascii_only=st.booleans())
def test_only_the_value_of_a_json_file_changes(
    edit: tuple[Any, Segments, Scalar], indent: int | str | None, ascii_only: bool
) -> None:
    document, path, value = edit
    # A key that only JSON can write so is not found by its name.
    name = str(DocumentPath(path))
    assume(name.isascii() and "\x7f" not in name)
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    file = DocumentFile.parse(text.encode(), json=True)
    node = file.find(DocumentPath(path))
    after = file.edited([FieldUpdate(path=DocumentPath(path), value=value)]).decode()
    assert json.loads(after) == changed(document, path, value)
    assert one_place_differs(text, after, text[node.start_mark.index : node.end_mark.index])


@fuzzed
@given(
    content=files,
    path=st.lists(texts.map(MappingKey) | st.integers(0, 3).map(ListIndex), min_size=1, max_size=3),
    value=scalars,
)
def test_any_file_is_edited_or_refused(content: bytes, path: list[MappingKey | ListIndex], value: Scalar) -> None:
    update = FieldUpdate(path=DocumentPath(tuple(path)), value=value, create=True)
    for is_json in (False, True):
        after = edited_or_refused(content, update, json=is_json)
        if isinstance(after, KardinalError):
            assert len(str(after)) < 2000
        else:
            assert DocumentFile.parse(after, json=is_json).edited([update]) == after
