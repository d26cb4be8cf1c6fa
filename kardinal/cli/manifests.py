"""Read the manifests of files, each field with the line that it stands on.

A text is bounded before it is composed, and each document with what its aliases repeat: nine lists of nine aliases each
are a gigabyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.cli.files import FILE_LIMIT
from kardinal.steps.yaml_text import YamlSyntaxError, check_bounds

__all__ = ["Manifest", "ManifestError", "read_manifests"]

_VALUES_LIMIT = 500_000
"""Values of a text; and of a document, with those that aliases repeat."""

FOREIGN = ForeignBytes(
    "files and directories that `kardinal lint` and `init` are given",
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
    """A text that is no YAML; `line` counts from one."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of a file."""

    body: dict[str, Any]
    _root: yaml.Node

    @property
    def kind(self) -> tuple[str, str]:
        """Return apiVersion and kind; empty where they are missing."""
        return str(self.body.get("apiVersion") or ""), str(self.body.get("kind") or "")

    @property
    def name(self) -> str:
        """Return the name of the object; empty where it has none."""
        metadata = self.body.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""

    def line(self, field: str) -> int:
        """Return the line of a field such as `spec.environments[0].path`, or of what is nearest above it."""
        node = self._root
        found = node.start_mark.line
        for index, name in _STEP.findall(field):
            child = _child(node, index, name)
            if child is None:
                break
            found, node = child
        return found + 1


def read_manifests(text: str) -> Iterator[Manifest]:
    """Yield the objects of a text; documents that are no mappings are passed over. Raises `ManifestError`."""
    loader = yaml.CSafeLoader(text)
    try:
        check_bounds(text, _VALUES_LIMIT)
        while loader.check_node():
            root = loader.get_node()
            if root is not None and _size(root, {}) > _VALUES_LIMIT:
                raise ManifestError(root.start_mark.line + 1, f"aliases make more than {_VALUES_LIMIT:,} values of it")
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
    """Return the values in a node, each as often as it is repeated; without an end for one that contains itself."""
    if id(node) not in known:
        known[id(node)] = _VALUES_LIMIT + 1
        known[id(node)] = 1 + sum(_size(part, known) for part in _parts(node))
    return known[id(node)]


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
