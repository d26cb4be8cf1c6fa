"""YAML manifests as plain values, within limits for everything that one reading looks at.

Scalars keep the text in which they are written, because the tag `1.10` is not a number; null is None. A hostile
document can be nested without end or repeat itself by aliases, so events are counted before the document is composed,
and values while they are built. Other documents mean something else to kustomize than to this reader, for example with
tags such as `!!binary` or duplicate keys. They count as unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from kardinal.bounded import ForeignBytes, mebibytes

__all__ = [
    "Mapping",
    "TooLarge",
    "Unread",
    "UnreadableManifest",
    "Value",
    "Volume",
    "documents",
    "mapping",
    "sequence",
    "text_of",
]

Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"
Mapping: TypeAlias = "dict[str, Value]"

_MAX_DEPTH = 100
_MAX_ALIASES = 1_000
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DEFINITION = "CustomResourceDefinition"
_STANDARD = "tag:yaml.org,2002:"
_NULL = f"{_STANDARD}null"
_NULLS = ("", "~", "null", "Null", "NULL")
_MERGE = f"{_STANDARD}merge"
_SCALARS = frozenset(f"{_STANDARD}{name}" for name in ("str", "null", "bool", "int", "float", "timestamp", "value"))


class UnreadableManifest(Exception):
    """A construct that this reader does not understand or does not evaluate; the text says which."""


class Unread(UnreadableManifest):
    """A file that takes part but was not completely read, so that its other contents are unknown."""


class TooLarge(Unread):
    """The input exceeds the limits of one reading; the reading ends."""


@dataclass(slots=True)
class Volume:
    """The remaining budget of one reading: bytes, files, and values in them."""

    bytes: int = 16 << 20
    files: int = 2_000
    values: int = 300_000

    def take(self, *, size: int = 0, files: int = 0, values: int = 0) -> None:
        self.bytes -= size
        self.files -= files
        self.values -= values
        if min(self.bytes, self.files, self.values) < 0:
            raise TooLarge("the kustomization and its bases are too large to be read")


def documents(content: bytes, volume: Volume, *, definitions: bool = False) -> Iterator[Value]:
    """Yield the documents of a file.

    Without `definitions`, CustomResourceDefinitions are left out, as they have no images.
    """
    volume.take(size=len(content), files=1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unread("not UTF-8 text") from error
    # A line that starts with three dashes is always a separator, because the lines of a multi-line scalar are indented.
    for part in _SEPARATOR.split(text):
        if part.strip() and (definitions or not _is_definition(part)):
            yield _document(part, volume)


def mapping(value: Value) -> Mapping:
    """Return `value` if it is a mapping, and otherwise an empty mapping."""
    return value if isinstance(value, dict) else {}


def sequence(value: Value) -> list[Value]:
    """Return `value` if it is a list, and otherwise an empty list."""
    return value if isinstance(value, list) else []


def text_of(value: Value) -> str:
    """Return `value` if it is a scalar, and otherwise an empty text."""
    return value if isinstance(value, str) else ""


def _is_definition(text: str) -> bool:
    """Return whether the first `kind` of a document is CustomResourceDefinition, without reading the whole document."""
    if _DEFINITION not in text:
        return False
    depth = nodes = 0
    key = ""
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth == 1 and isinstance(event, yaml.NodeEvent):
                # The nodes of the outermost mapping are key, value, key, value …
                value = event.value if isinstance(event, yaml.ScalarEvent) else ""
                if nodes % 2 and key == "kind":
                    return value == _DEFINITION
                key = value
                nodes += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
            if isinstance(event, yaml.SequenceStartEvent) and depth == 1:
                return False
    except yaml.YAMLError:
        return False
    return False


def _document(text: str, volume: Volume) -> Value:
    try:
        _check_bounds(text, volume)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise Unread("not valid YAML") from error
    return _plain(node, volume) if node is not None else None


def _check_bounds(text: str, volume: Volume) -> None:
    depth = aliases = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        volume.take(values=1)
        if isinstance(event, yaml.AliasEvent):
            aliases += 1
        elif isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _MAX_DEPTH or aliases > _MAX_ALIASES:
            raise Unread("a document is nested too deeply, or repeats itself too often")


def _plain(node: yaml.Node, volume: Volume, depth: int = 0) -> Value:
    volume.take(values=1)
    if depth > _MAX_DEPTH:
        # An alias to a node that contains it.
        raise Unread("a document contains itself")
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_STANDARD}seq":
        return [_plain(item, volume, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_STANDARD}map":
        return _plain_mapping(node, volume, depth)
    if not isinstance(node, yaml.ScalarNode) or node.tag not in _SCALARS:
        raise Unread(f"the tag {node.tag.replace(_STANDARD, '!!')[:60]} may stand for anything")
    if node.tag == _NULL:
        if node.value not in _NULLS:
            raise Unread("the tag !!null before a text may stand for anything")
        return None
    return str(node.value)


def _plain_mapping(node: yaml.MappingNode, volume: Volume, depth: int) -> Mapping:
    merged: Mapping = {}
    own: Mapping = {}
    for name, item in node.value:
        value = _plain(item, volume, depth + 1)
        if name.tag == _MERGE and name.value == "<<":
            for source in value if isinstance(value, list) else [value]:
                merged = mapping(source) | merged
        elif not isinstance(name, yaml.ScalarNode) or name.tag not in _SCALARS:
            raise Unread("a key of a mapping is not plain text")
        elif name.value in own:
            raise Unread(f"the key {name.value[:60]!r} is there twice")
        else:
            own[name.value] = value
    return merged | own


FOREIGN = ForeignBytes(
    "kustomizations with their layers, and what renderers write",
    of="Git writer",
    size=f"{mebibytes(Volume().bytes)} of output; 5,000 files in 48 MiB are given to a renderer",
    unpacked="as Git objects",
    structure=f"{Volume().files:,} files, {Volume().values:,} values, counted before they are composed; "
    f"{_MAX_DEPTH} levels and {_MAX_ALIASES:,} aliases of a document",
    time="60 s a rendering",
    held="the output of one rendering, and 32 MiB that are kept; as many renderers as there is memory for",
    decoded="rendered in a child, decoded on a thread",
    tests=(
        "git/test_rendering_attacks.py::test_output_without_end_is_cut_off",
        "git/test_rendering_attacks.py::test_too_many_files_are_not_written",
        "attacks/test_git_edits.py::test_a_chain_of_aliases_is_not_followed",
    ),
)
