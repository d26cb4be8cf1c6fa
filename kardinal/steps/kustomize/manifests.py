"""YAML manifests as plain values, within bounds that hold for everything that one reading looks at.

Scalars are text as it is written, because a tag `1.10` is no number; null is None. A hostile document nests without end
and repeats itself by aliases, so events are counted before anything is composed and values while they are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import yaml

__all__ = ["Mapping", "TooLarge", "Unreadable", "Value", "Volume", "documents", "mapping", "sequence", "text_of"]

Value: TypeAlias = "str | list[Value] | dict[str, Value] | None"
Mapping: TypeAlias = "dict[str, Value]"

_MAX_DEPTH = 100
_MAX_ALIASES = 1_000
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DEFINITION = re.compile(r"""^["']?kind["']?: *["']?CustomResourceDefinition["']?\s*$""", re.MULTILINE)
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"


class Unreadable(Exception):
    """Something that this reader does not understand, or does not go through; the text says what."""


class TooLarge(Unreadable):
    """More than one reading goes through: nothing more is looked at."""


@dataclass(slots=True)
class Volume:
    """How much may still be read: bytes, files, and values in them."""

    bytes: int = 16 << 20
    files: int = 2_000
    values: int = 300_000

    def take(self, *, size: int = 0, files: int = 0, values: int = 0) -> None:
        self.bytes -= size
        self.files -= files
        self.values -= values
        if min(self.bytes, self.files, self.values) < 0:
            raise TooLarge("the kustomization and its bases are too large to be read")


def documents(content: bytes, volume: Volume) -> Iterator[Value]:
    """Yield the documents of a file; definitions of custom resources are left out, because they hold no image."""
    volume.take(size=len(content), files=1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable("not UTF-8 text") from error
    # A line that begins with three dashes is a separator everywhere: what is in a scalar of many lines is indented.
    for part in _SEPARATOR.split(text):
        if part.strip() and not _DEFINITION.search(part):
            yield _document(part, volume)


def mapping(value: Value) -> Mapping:
    """Return a mapping, empty for anything else."""
    return value if isinstance(value, dict) else {}


def sequence(value: Value) -> list[Value]:
    """Return a list, empty for anything else."""
    return value if isinstance(value, list) else []


def text_of(value: Value) -> str:
    """Return a scalar, empty for anything else."""
    return value if isinstance(value, str) else ""


def _document(text: str, volume: Volume) -> Value:
    try:
        _check_bounds(text, volume)
        node = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        raise Unreadable("not valid YAML") from error
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
            raise Unreadable("a document is nested too deeply, or repeats itself too often")


def _plain(node: yaml.Node, volume: Volume, depth: int = 0) -> Value:
    volume.take(values=1)
    if depth > _MAX_DEPTH:
        # An alias to what it stands in.
        raise Unreadable("a document contains itself")
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, volume, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _plain_mapping(node, volume, depth)
    return None if node.tag == _NULL else str(node.value)


def _plain_mapping(node: yaml.MappingNode, volume: Volume, depth: int) -> Mapping:
    merged: Mapping = {}
    own: Mapping = {}
    for name, item in node.value:
        value = _plain(item, volume, depth + 1)
        if name.tag == _MERGE:
            for source in value if isinstance(value, list) else [value]:
                merged = mapping(source) | merged
        elif isinstance(name, yaml.ScalarNode):
            own[name.value] = value
    return merged | own
