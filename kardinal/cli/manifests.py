"""Read the manifests of files, each field with the line that it stands on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

__all__ = ["Manifest", "ManifestError", "read_manifests"]

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
        while loader.check_node():
            root = loader.get_node()
            body = loader.construct_document(root) if root is not None else None
            if root is not None and isinstance(body, dict):
                yield Manifest(body, root)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise ManifestError(mark.line + 1 if mark else 1, error.problem or "it is no YAML") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise ManifestError(1, "it is no YAML") from None
    finally:
        loader.dispose()


def _child(node: yaml.Node, index: str, name: str) -> tuple[int, yaml.Node] | None:
    if index and isinstance(node, yaml.SequenceNode) and int(index) < len(node.value):
        child: yaml.Node = node.value[int(index)]
        return child.start_mark.line, child
    if name and isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == name:
                return key.start_mark.line, value
    return None
