"""Single values of YAML and JSON files change, and not one other byte of them."""

from __future__ import annotations

import textwrap

import pytest
import yaml

from kardinal.edits.yaml.document_path import parse_path
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.document_walk import DocumentError
from kardinal.edits.yaml.yaml_scalar import Scalar


def update(path: str, value: Scalar, *, document: int = 0, create: bool = False) -> FieldUpdate:
    return FieldUpdate(path=parse_path(path), value=value, document=document, create=create)


def edited(text: str, *updates: FieldUpdate, json: bool = False) -> str:
    return DocumentFile.parse(textwrap.dedent(text).encode(), json=json).edited(updates).decode()


def refusal(text: str, *updates: FieldUpdate, json: bool = False) -> str:
    with pytest.raises(DocumentError) as caught:
        edited(text, *updates, json=json)
    return str(caught.value)


VALUES = """\
# Owned by team red.
replicas: 2   # two of them
image: {repository: ghcr.io/acme/app, tag: '1.0', pull: Always}
containers:
    - name: app
      env: [ a, b ]     # odd
      args: ["--level", 'info']

    - name: sidecar
      text: |
        one
        two
"labels":
  example.com/part-of: red
  empty:
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("replicas", 3, "replicas: 2   #", "replicas: 3   #"),
        ("replicas", "3", "replicas: 2   #", 'replicas: "3"   #'),
        ("image.tag", "1.1", "tag: '1.0'", "tag: '1.1'"),
        ("image.tag", "it's", "tag: '1.0'", "tag: 'it''s'"),
        ("image.pull", True, "pull: Always", "pull: true"),
        ("image.pull", "yes", "pull: Always", 'pull: "yes"'),
        ("containers[name=app].env[1]", "two words", "[ a, b ]", "[ a, two words ]"),
        ("containers[0].args[0]", 'say "x"', '"--level"', '"say \\"x\\""'),
        ("containers[name=sidecar].text", "1\n2\n", "|\n        one\n        two\n", '"1\\n2\\n"\n'),
        ('labels."example.com/part-of"', "blue", "part-of: red", "part-of: blue"),
        ("labels.empty", "2024-01-01", "empty:\n", 'empty: "2024-01-01"\n'),
        ("labels.empty", None, "", ""),
    ],
)
def test_a_value_changes_and_nothing_else(path: str, value: Scalar, old: str, new: str) -> None:
    after = edited(VALUES, update(path, value))
    assert after == VALUES.replace(old, new, 1)


def test_a_value_that_is_there_already_changes_nothing() -> None:
    assert edited(VALUES, update("image.tag", "1.0"), update("replicas", 2)) == VALUES


def test_several_values_change_at_once() -> None:
    after = edited(VALUES, update("image.tag", "2"), update("replicas", 9), update("containers[1].name", "car"))
    expected = VALUES.replace("'1.0'", "'2'").replace("replicas: 2", "replicas: 9").replace("sidecar", "car")
    assert after == expected


def test_line_endings_and_the_byte_order_mark_stay() -> None:
    content = b"\xef\xbb\xbf" + VALUES.replace("\n", "\r\n").encode()
    after = DocumentFile.parse(content).edited([update("image.tag", "1.1"), update("image.new", 1, create=True)])
    assert after == content.replace(b"'1.0'", b"'1.1'").replace(b"Always}", b"Always, new: 1}")


def test_documents_are_counted_and_their_marks_stay() -> None:
    text = "%YAML 1.1\n---\na: 1\n...\n# between\n--- # two\na: 1\n---\na: 1"
    assert edited(text, update("a", 2, document=1)) == text.replace("two\na: 1", "two\na: 2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a:\n  b: 1  # one\n\n# end\n", "a:\n  b: 1  # one\n  new: x\n\n# end\n"),
        ("a: {b: 1}\n", "a: {b: 1, new: x}\n"),
        ("a: {}\n", "a: {new: x}\n"),
        ("a:\n  - 1\n", None),
        ("a:\n", None),
        ("a: &x {b: 1}\nc: *x\n", None),
        ("a:\n  b: |+\n    1\n\n", None),
        ("a:\n  ? b\n  : 1\n", None),
    ],
)
def test_a_last_key_is_added_where_that_is_asked_for(before: str, after: str | None) -> None:
    if after is None:
        assert refusal(before, update("a.new", "x", create=True))
    else:
        assert edited(before, update("a.new", "x", create=True)) == after
    assert "no key 'new'" in refusal("a: {b: 1}", update("a.new", "x"))
    assert "no key 'x'" in refusal("a: {b: 1}", update("a.x.new", "x", create=True))


@pytest.mark.parametrize(
    ("text", "path", "message"),
    [
        (VALUES, "image.tga", "image.tga: no key 'tga' in image (line 3); did you mean 'tag'?"),
        (VALUES, "imag.tag", "imag.tag: no key 'imag' in the document; did you mean 'image'?"),
        (VALUES, "image.x", "image.x: no key 'x' in image (line 3); it has repository, tag, pull"),
        (VALUES, "image.tag.x", "image.tag.x: image.tag (line 3) is the value '1.0', which has no keys"),
        (VALUES, "containers.name", "containers.name: containers (line 4) is a list, which has no keys"),
        (VALUES, "image[0]", "image[0]: image (line 3) is a mapping, not a list"),
        (VALUES, "image", "image (line 3) is a mapping; name a single value in it"),
        (VALUES, "containers[2].name", "containers (line 4) has no item [2]; it has 2, counted from 0"),
        (VALUES, "containers[name=ap].env[0]", "no item of containers (line 4) has name: ap; it has app, sidecar"),
        ("a: [{n: 1}, {n: 1}]", "a[n=1].n", "several items of a (line 1) are [n=1], on lines 1, 1"),
        ("a: 1\nb: 2\na: 3", "a", "a stands twice in the document, on lines 1 and 3; keep one"),
        ("", "a", "has 0 documents, and number 1 was asked for"),
        ("# only\n", "a", "has 0 documents, and number 1 was asked for"),
        ("---\n", "a", "a: the document is nothing, which has no keys"),
        ("a: |  # why\n  x\n", "a", "a: the comment after | on line 1 would be lost"),
        ("a: !vault x\n", "a", "a: cannot be changed without something else"),
        ("a: {{ .Values.x }}: {\n", "a", "a template cannot be edited"),
        ("a: [", "a", "invalid YAML: line 2, column 1"),
        ("a: \x00", "a", "a character that YAML does not allow"),
    ],
)
def test_value_that_cannot_be_set_is_refused_with_its_line(text: str, path: str, message: str) -> None:
    assert message in refusal(text, update(path, "x"))


ANCHORS = (
    "base: &base\n  tag: 1\n  own: 2\nother: *base\nmerged:\n  <<: *base\n  own: &o 3\nlast: &last 4\nname: *last\n"
)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("base.tag", "base has the anchor on line 1, which is repeated on line 4 and 6"),
        ("other.tag", "other has the anchor on line 1, which is repeated on line 4 and 6"),
        ("merged.tag", "if the merge key on line 6 brings it, write it out"),
        ("last", "last has the anchor on line 8, which is repeated on line 9"),
        ("name", "name has the anchor on line 8, which is repeated on line 9"),
    ],
)
def test_a_value_that_an_alias_repeats_is_refused_with_both_lines(path: str, message: str) -> None:
    assert message in refusal(ANCHORS, update(path, "x"))


def test_a_value_beside_aliases_is_set() -> None:
    assert edited(ANCHORS, update("merged.own", "x")) == ANCHORS.replace("&o 3", "&o x")


def test_a_circle_of_aliases_ends() -> None:
    text = "a: &a\n  b: *a\n  c: 1\nd: 2\n"
    assert "repeated" in refusal(text, update("a.b.b.c", 2))
    assert edited(text, update("d", 3)) == text.replace("d: 2", "d: 3")


def test_one_path_takes_one_value() -> None:
    assert "given two values, 1 and '1'" in refusal("a: 0", update("a", 1), update("a", "1"))
    assert edited("a: 0", update("a", 1), update("a", 1)) == "a: 1"


@pytest.mark.parametrize("content", [b"\xff\xfe", "a: 1".encode("utf-16"), b"a: \xe9"])
def test_only_utf_8_is_read(content: bytes) -> None:
    with pytest.raises(DocumentError, match="UTF-8"):
        DocumentFile.parse(content)


@pytest.mark.parametrize(
    ("text", "limit"), [("a: [" + "1," * 50_001 + "]", "50,000 values"), ("[" * 200, "100 levels")]
)
def test_a_file_that_is_costly_to_read_is_refused(text: str, limit: str) -> None:
    assert limit in refusal(text, update("a", 1))


JSON = '{\n\t"image": {"tag":"1.0", "note": "\\ud83d\\ude00 \\/ \\\\ud83d"},\n\t"list": [{"name": "a", "n": 1e5}]\n}\n'


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("image.tag", "1.1", '"1.0"', '"1.1"'),
        ("image.tag", 'a"\\\n\x7f\u2028😀', '"1.0"', '"a\\"\\\\\\n\\u007f\\u2028😀"'),
        ("image.tag", "plain", '"1.0"', '"plain"'),
        ("list[name=a].n", 1.5, "1e5", "1.5"),
        ("list[name=a].n", None, "1e5", "null"),
        ("list[name=a].n", 1e30, "1e5", "1.0e+30"),
    ],
)
def test_json_stays_json(path: str, value: Scalar, old: str, new: str) -> None:
    assert edited(JSON, update(path, value), json=True) == JSON.replace(old, new, 1)


def test_a_key_is_added_to_json_as_its_neighbours_stand() -> None:
    after = edited(JSON, update("image.x", "y", create=True), update("z", False, create=True), json=True)
    assert after == JSON.replace('ud83d"}', 'ud83d", "x": "y"}').replace("}]\n", '}],\n\t"z": false\n')


@pytest.mark.parametrize("text", ["{a: 1}", '{"a": 1,}', '{"a": 1} // x', '{"a": 1}\n---\n{}', "{'a': 1}"])
def test_yaml_is_not_taken_for_json(text: str) -> None:
    assert "invalid JSON" in refusal(text, update("a", 2), json=True)


def test_a_number_is_not_mistaken_for_its_text() -> None:
    for value in (
        "1",
        "1.0",
        "true",
        "null",
        "~",
        "0x1f",
        "1e5",
        "0o7",
        "no",
        "y",
        "1_000",
        "2001-12-14",
        "",
        " ",
        "- a",
    ):
        after = edited("a: x\n", update("a", value))
        assert yaml.safe_load(after) == {"a": value}
        assert after.startswith('a: "')
