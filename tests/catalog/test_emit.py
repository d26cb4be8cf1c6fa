"""The bytes of YAML and JSON, as syn-commodore 1.35.1 wrote them for the same values."""

from __future__ import annotations

import pytest

from kardinal.catalog.worker.emit import TextStyle, filtered, json_document, manifest, pruned, yaml_text


def test_manifest_sorts_keys_and_indents_lists() -> None:
    value = {"b": [1, {"c": True, "a": None}], "a": {"y": "yes", "n": "010"}}
    assert manifest(value).decode() == ("a:\n  n: '010'\n  y: 'yes'\nb:\n  - 1\n  - a: null\n    c: true\n")


def test_list_is_one_document_each() -> None:
    assert manifest([{"a": 1}, {"b": 2}, None]).decode() == "a: 1\n---\nb: 2\n--- null\n...\n"


@pytest.mark.parametrize("value", [{}, [], None, "", 0, False])
def test_empty_value_is_a_file_without_bytes(value: object) -> None:
    assert manifest(value) == b""
    assert json_document(value) == b""


def test_text_of_several_lines_is_a_block() -> None:
    assert manifest({"a": "one\ntwo\n", "b": "é", "c": "x " * 60}).decode() == (
        'a: |\n  one\n  two\nb: "\\xE9"\nc: \'' + "x " * 38 + "x\n  " + "x " * 20 + "x '\n"
    )


@pytest.mark.parametrize(
    ("style", "text"),
    [
        ("|", "a: |-\n  one\n  two\n"),
        (">", "a: >-\n  one\n\n  two\n"),
        ('"', 'a: "one\\ntwo"\n'),
        (None, "a: 'one\n\n  two'\n"),
    ],
)
def test_text_style_of_the_parameters(style: TextStyle, text: str) -> None:
    assert manifest({"a": "one\ntwo"}, text_style=style).decode() == text


def test_text_as_manifest_is_written_by_its_characters() -> None:
    assert manifest("ab").decode() == "a\n--- b\n...\n"


def test_json_is_sorted_without_final_newline() -> None:
    assert json_document({"b": [1], "a": "é"}) == b'{\n  "a": "\\u00e9",\n  "b": [\n    1\n  ]\n}'


def test_filter_writes_empty_values() -> None:
    assert filtered({}) == b"{}\n"
    assert filtered([]) == b""
    assert filtered([{"a": ["b"]}, {}]) == b"a:\n  - b\n--- {}\n"
    assert filtered("a") == b"a\n...\n"


def test_pruning_leaves_what_became_empty() -> None:
    assert pruned({"a": {}, "b": {"c": [], "d": 0}, "e": [[], None, {"f": {}}]}) == {"b": {"d": 0}, "e": [{}]}


def test_native_yaml_keeps_lists_below_their_key() -> None:
    assert yaml_text({"b": [1], "a": "x\ny"}) == "a: 'x\n\n  y'\nb:\n- 1\n"
