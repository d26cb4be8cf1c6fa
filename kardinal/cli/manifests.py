"""Read manifests from YAML, with the line of each field.

The number of values is limited before the YAML is composed, and once more for each document with its aliases expanded:
nine lists of nine aliases each, nested, expand to a gigabyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.bounded.loader import BoundedLoader
from kardinal.cli.files import FILE_LIMIT
from kardinal.edits.yaml.yaml_text import YamlSyntaxError, check_bounds

__all__ = ["Manifest", "ManifestError", "read_manifests"]

_VALUES_LIMIT = 500_000
"""The maximum number of values in a text, and in each document with its aliases expanded."""

FOREIGN = ForeignBytes(
    "files and directories that `kardinal lint`, `render`, `init` and `cel` are given",
    of="contributor",
    size=f"{mebibytes(FILE_LIMIT)} a file; regular files, no links out of a directory",
    unpacked="not compressed",
    structure=f"{_VALUES_LIMIT:,} values, with those that aliases repeat; 100 levels",
    time="none: a regular file ends",
    held="one file",
    decoded="in the command",
    tests=("attacks/test_command_files.py",),
)

_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


class ManifestError(ValueError):
    """The text is not valid YAML, or too large; `line` is the line of the error, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a file, with the positions of its fields."""

    body: dict[str, Any]
    _root: yaml.Node

    @property
    def kind(self) -> tuple[str, str]:
        """Return apiVersion and kind, for example `("kardinal.io/v1alpha1", "Pipeline")`; empty if missing."""
        return str(self.body.get("apiVersion") or ""), str(self.body.get("kind") or "")

    @property
    def name(self) -> str:
        """Return `metadata.name`; empty if it is missing."""
        metadata = self.body.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""

    def line(self, field: str) -> int:
        """Return the line of a field such as `spec.environments[0].path`, from 1.

        If the field is missing, the line of its nearest existing parent is returned.
        """
        node = self._root
        found = node.start_mark.line
        for index, name in _STEP.findall(field):
            child = _child(node, index, name)
            if child is None:
                break
            found, node = child
        return found + 1


def read_manifests(text: str) -> Iterator[Manifest]:
    """Yield the documents of a text that are mappings. Raises `ManifestError` for invalid YAML or too many values."""
    loader = BoundedLoader(text)
    try:
        check_bounds(text, _VALUES_LIMIT)
        while loader.check_node():
            root = loader.get_node()
            if root is not None and _size(root, {}) > _VALUES_LIMIT:
                raise ManifestError(root.start_mark.line + 1, f"aliases make more than {_VALUES_LIMIT:,} values of it")
            if root is not None:
                _check_keys(root, set())
            body = loader.construct_document(root) if root is not None else None
            if root is not None and isinstance(body, dict):
                yield Manifest(body, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ManifestError(mark.line + 1 if mark else 1, error.problem or "it is no YAML") from None
    except YamlSyntaxError as error:
        raise ManifestError(1, str(error)) from None
    except ManifestError:
        raise
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ManifestError(1, "it is no YAML") from None
    finally:
        loader.dispose()


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return the number of values in a node with its aliases expanded.

    A node that contains itself counts more than `_VALUES_LIMIT`. `known` caches the numbers by the id of the node.
    """
    if id(node) not in known:
        known[id(node)] = _VALUES_LIMIT + 1
        known[id(node)] = 1 + sum(_size(part, known) for part in _parts(node))
    return known[id(node)]


def _check_keys(node: yaml.Node, seen: set[int]) -> None:
    """Raise `ManifestError` for a key that a mapping has twice: the first value, or a whole object, would be lost."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                remedy = "keep one, or separate two objects by a line with ---"
                raise ManifestError(key.start_mark.line + 1, f"the key {key.value[:60]!r} is there twice: {remedy}")
            keys |= {key.value} if isinstance(key, yaml.ScalarNode) else set()
    for part in _parts(node):
        _check_keys(part, seen)


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _child(node: yaml.Node, index: str, name: str) -> tuple[int, yaml.Node] | None:
    if index and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
        child: yaml.Node = node.value[int(index)]
        return child.start_mark.line, child
    if name and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line, value
    return None
