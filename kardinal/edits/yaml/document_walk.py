"""Follow a path into a document; if the path ends too early, the error says how far it leads."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from kardinal.edits.yaml.document_path import DocumentPath, Item, ListIndex, MappingKey
from kardinal.edits.yaml.yaml_text import described
from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest
from kardinal.objects.text import cut

__all__ = ["DocumentError", "MissingKey", "MissingValue", "find", "line_of", "text_of", "walk"]

_NAMES_SHOWN = 8
_MERGE = "tag:yaml.org,2002:merge"


class DocumentError(KardinalError):
    """A file that cannot be edited as requested; the message names the line and the value there."""


class MissingValue(DocumentError):
    """There is no value at the path."""


class MissingKey(MissingValue):
    """The last mapping of `trail` lacks a key of the path. `last`: it is the last key of the path."""

    def __init__(self, message: str, *, trail: list[yaml.Node], last: bool) -> None:
        super().__init__(message)
        self.trail = trail
        self.last = last


def walk(root: yaml.Node, path: DocumentPath) -> list[yaml.Node]:
    """Return the nodes from `root` to the one at `path`, both included. Raises `DocumentError`."""
    trail = [root]
    line = line_of(root)
    for depth, segment in enumerate(path.segments):
        place = _place(DocumentPath(path.segments[:depth]), line)
        if isinstance(segment, MappingKey):
            name, found = _pair_of(trail[-1], segment.name, path, place)
            if name is None or found is None:
                message = f"{path}: {_no_key(trail[-1], segment.name, place)}"
                raise MissingKey(message, trail=trail, last=depth + 1 == len(path.segments))
            line = line_of(name)
        elif not isinstance(trail[-1], yaml.SequenceNode):
            raise MissingValue(f"{path}: {place} is {described(trail[-1])}, not a list")
        else:
            found = _item_of(trail[-1], segment, path, place)
            line = line_of(found)
        trail.append(found)
    return trail


def find(root: yaml.Node | None, path: DocumentPath) -> yaml.Node | None:
    """Return the node at `path`, or None if there is none."""
    try:
        return walk(root, path)[-1] if root is not None else None
    except MissingValue:
        return None


def line_of(node: yaml.Node | yaml.Event) -> int:
    """Return the line on which a node starts, from 1."""
    return int(node.start_mark.line) + 1 if node.start_mark else 1


def text_of(node: yaml.Node | None) -> str | None:
    """Return the text of a scalar; None if the node is missing, null or not a scalar."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return None
    return str(node.value)


def _place(path: DocumentPath, line: int) -> str:
    return f"{path} (line {line})" if path.segments else "the document"


def _pair_of(
    node: yaml.Node, key: str, path: DocumentPath, place: str
) -> tuple[yaml.Node, yaml.Node] | tuple[None, None]:
    if not isinstance(node, yaml.MappingNode):
        raise MissingValue(f"{path}: {place} is {described(node)}, which has no keys")
    found = [(name, value) for name, value in node.value if isinstance(name, yaml.ScalarNode) and name.value == key]
    if len(found) > 1:
        lines = " and ".join(str(line_of(name)) for name, _ in found[:2])
        raise DocumentError(f"{path}: {key} stands twice in {place}, on lines {lines}; keep one")
    return found[0] if found else (None, None)


def _no_key(node: yaml.Node, key: str, place: str) -> str:
    names = [name for name, _ in node.value if isinstance(name, yaml.ScalarNode)]
    merge = next((name for name in names if name.tag == _MERGE), None)
    if merge is not None:
        return f"no key {key!r} in {place}; if the merge key on line {line_of(merge)} brings it, write it out"
    near = nearest(key, [name.value for name in names])
    if near:
        return f"no key {key!r} in {place}; did you mean {cut(near, 60)!r}?"
    return f"no key {key!r} in {place}; it has {_listed(name.value for name in names) or 'no keys'}"


def _item_of(node: yaml.SequenceNode, segment: ListIndex | Item, path: DocumentPath, place: str) -> yaml.Node:
    if isinstance(segment, ListIndex):
        return _item_at(node, segment, path, place)
    return _item_with(node, segment, path, place)


def _item_at(node: yaml.SequenceNode, segment: ListIndex, path: DocumentPath, place: str) -> yaml.Node:
    if segment.position >= len(node.value):
        raise MissingValue(f"{path}: {place} has no item {segment}; it has {len(node.value)}, counted from 0")
    found: yaml.Node = node.value[segment.position]
    return found


def _item_with(node: yaml.SequenceNode, segment: Item, path: DocumentPath, place: str) -> yaml.Node:
    values: list[tuple[yaml.Node, str | None]] = [(item, _text_at(item, segment.key)) for item in node.value]
    found = [item for item, value in values if value == segment.value]
    if not found:
        there = _listed(value for _, value in values if value is not None) or "no item with that key"
        raise MissingValue(f"{path}: no item of {place} has {segment.key}: {segment.value}; it has {there}")
    if len(found) > 1:
        lines = ", ".join(str(line_of(item)) for item in found[:_NAMES_SHOWN])
        raise DocumentError(f"{path}: several items of {place} are {segment}, on lines {lines}; name one by its index")
    return found[0]


def _text_at(item: yaml.Node, key: str) -> str | None:
    if not isinstance(item, yaml.MappingNode):
        return None
    return next((text_of(value) for name, value in item.value if name.value == key), None)


def _listed(names: Iterable[str]) -> str:
    shown = [cut(name, 60) for name in names]
    more = len(shown) - _NAMES_SHOWN
    return ", ".join(shown[:_NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
