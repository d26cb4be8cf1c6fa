"""Change single values of a YAML or JSON file, and nothing else in it.

The documents of a file are parsed into nodes with their positions in the text (`yaml_text`), and each value is replaced
at its position. Comments, quotes, order, indentation, line endings, a byte order mark and the separators of documents
are never touched. The code that edits does not have to be trusted for that: the new text is parsed again, and every
node except the changed ones must be equal to the old one.

A value that an alias or a merge key repeats would change in other places, too. Such a change is refused, and the error
names both lines.
"""

from __future__ import annotations

import codecs
import json as json_reader
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import yaml

from kardinal.edits.yaml import yaml_text
from kardinal.edits.yaml.document_path import DocumentPath, MappingKey
from kardinal.edits.yaml.document_walk import DocumentError, MissingKey, line_of, walk
from kardinal.edits.yaml.yaml_scalar import Scalar, holds, written
from kardinal.edits.yaml.yaml_text import DocumentDifference, Splice, described

__all__ = ["DocumentFile", "FieldUpdate"]

_LINES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldUpdate:
    """A value to set in one document. With `create`, the last key of the path is added if it is missing."""

    path: DocumentPath
    value: Scalar
    document: int = 0
    create: bool = False


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """The documents of a file, and their text."""

    text: str
    json: bool
    roots: tuple[yaml.Node, ...]
    mark: bytes = b""
    """The byte order mark, if the file starts with one."""

    @classmethod
    def parse(cls, content: bytes, *, json: bool = False) -> DocumentFile:
        """Parse a file. Raises `DocumentError` if it is not UTF-8, or not YAML or JSON."""
        mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DocumentError(f"not UTF-8 text (byte {error.start}); save it as UTF-8") from error
        try:
            roots = tuple(yaml_text.compose_all(text, json=json))
            if json:
                json_reader.loads(text, parse_int=str)
        except yaml_text.YamlSyntaxError as error:
            hint = "; a template cannot be edited: edit the values it takes" if "{{" in text else ""
            raise DocumentError(f"invalid {'JSON' if json else 'YAML'}: {error}{hint}") from error
        except json_reader.JSONDecodeError as error:
            raise DocumentError(f"invalid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
        return cls(text, json, roots, mark)

    def find(self, path: DocumentPath, *, document: int = 0) -> yaml.Node:
        """Return the node at a path.

        Raises `DocumentError`; for a missing value, the message names the nearest place.
        """
        return walk(self.root(document), path)[-1]

    def root(self, document: int = 0) -> yaml.Node:
        if document >= len(self.roots):
            raise DocumentError(f"has {len(self.roots)} documents, and number {document + 1} was asked for")
        return self.roots[document]

    def edited(self, updates: Sequence[FieldUpdate]) -> bytes:
        """Return the content with all values set. Raises `DocumentError`."""
        changes = _Changes()
        for update in updates:
            self._plan(update, changes)
        splices = changes.splices(self.text, json=self.json)
        text = yaml_text.apply_all(self.text, splices)
        if splices:
            self._check_only(changes, text, updates)
        return self.mark + text.encode()

    def _plan(self, update: FieldUpdate, changes: _Changes) -> None:
        root = self.root(update.document)
        try:
            trail = walk(root, update.path)
            key = None
        except MissingKey as missing:
            if not (update.create and missing.last):
                raise
            trail = missing.trail
            key = update.path.segments[-1]
        self._check_not_repeated(trail, changes.parents_in(root), update)
        target = trail[-1]
        if isinstance(key, MappingKey) and isinstance(target, yaml.MappingNode):
            changes.add(target, key.name, update)
        elif isinstance(target, yaml.ScalarNode):
            self._check_header(target, update)
            changes.set(target, update)
        else:
            place = f"{update.path} (line {line_of(target)})"
            raise DocumentError(f"{place} is {described(target)}; name a single value in it")

    def _check_not_repeated(self, trail: Sequence[yaml.Node], parents: Counter[int], update: FieldUpdate) -> None:
        """Refuse a node with several parents, because it is repeated elsewhere."""
        for depth, node in enumerate(trail):
            if parents[id(node)] > (1 if depth else 0):
                place = DocumentPath(update.path.segments[:depth])
                raise DocumentError(
                    f"{update.path}: {place} has the anchor on line {line_of(node)}, which is repeated"
                    f"{self._aliases(node)}, and would change there too; write the values out instead of the alias"
                )

    def _aliases(self, node: yaml.Node) -> str:
        """Return the lines on which the anchor of `node` is used, as text for a message."""
        match = re.compile(r"&([^\s,\[\]{}]+)").match(self.text, node.start_mark.index)
        events = yaml.parse(self.text, Loader=yaml.CSafeLoader) if match else ()
        lines = [
            str(line_of(event))
            for event in events
            if isinstance(event, yaml.AliasEvent) and match and event.anchor == match[1]
        ]
        return f" on line {' and '.join(lines[:_LINES_SHOWN])}" if lines else ""

    def _check_header(self, node: yaml.ScalarNode, update: FieldUpdate) -> None:
        start = node.start_mark.index
        if node.style in ("|", ">") and "#" in self.text[start:].partition("\n")[0]:
            raise DocumentError(
                f"{update.path}: the comment after {node.style} on line {line_of(node)} would be lost; "
                "put it on a line of its own"
            )

    def _check_only(self, changes: _Changes, text: str, updates: Sequence[FieldUpdate]) -> None:
        """Raise `DocumentError` unless the new text equals the old one except for the updates."""
        try:
            roots = DocumentFile.parse(text.encode(), json=self.json).roots
        except DocumentError:
            roots = ()
        but = changes.difference()
        if len(roots) != len(self.roots) or not all(
            yaml_text.same(old, new, but=but) for old, new in zip(self.roots, roots, strict=True)
        ):
            paths = ", ".join(str(update.path) for update in updates[:_LINES_SHOWN])
            raise DocumentError(
                f"{paths}: cannot be changed without something else; write the old value plainly, on one line and "
                "without a tag"
            )


@dataclass(frozen=True, slots=True)
class _Changes:
    """The values that change, by the `id` of their node, and the keys that are added, by the `id` of their mapping."""

    values: dict[int, tuple[yaml.ScalarNode, Scalar]] = field(default_factory=dict)
    added: dict[int, tuple[yaml.MappingNode, dict[str, Scalar]]] = field(default_factory=dict)
    parents: dict[int, Counter[int]] = field(default_factory=dict)

    def parents_in(self, root: yaml.Node) -> Counter[int]:
        if id(root) not in self.parents:
            self.parents[id(root)] = _parents(root)
        return self.parents[id(root)]

    def set(self, node: yaml.ScalarNode, update: FieldUpdate) -> None:
        _, value = self.values.setdefault(id(node), (node, update.value))
        _check_same(value, update)

    def add(self, mapping: yaml.MappingNode, key: str, update: FieldUpdate) -> None:
        _, pairs = self.added.setdefault(id(mapping), (mapping, {}))
        _check_same(pairs.setdefault(key, update.value), update)

    def splices(self, text: str, *, json: bool) -> list[Splice]:
        values = [
            yaml_text.replace_scalar(text, node, written(value, style=node.style, json=json))
            for node, value in self.values.values()
            if not holds(node, value)
        ]
        return values + [
            yaml_text.add_keys(text, mapping, list(pairs.items()), json=json) for mapping, pairs in self.added.values()
        ]

    def difference(self) -> DocumentDifference:
        return DocumentDifference(
            values={name: value for name, (_, value) in self.values.items()},
            added={name: tuple(pairs.items()) for name, (_, pairs) in self.added.items()},
        )


def _check_same(value: Scalar, update: FieldUpdate) -> None:
    if (value, type(value)) != (update.value, type(update.value)):
        raise DocumentError(f"{update.path} is given two values, {value!r} and {update.value!r}; keep one")


def _parents(root: yaml.Node) -> Counter[int]:
    """Return the number of parents of each node, by its `id`."""
    parents: Counter[int] = Counter()
    pending = [root]
    seen = {id(root)}
    while pending:
        for child in yaml_text.children(pending.pop()):
            parents[id(child)] += 1
            if id(child) not in seen:
                seen.add(id(child))
                pending.append(child)
    return parents
