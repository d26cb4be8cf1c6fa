"""Read the few documents that are decoded outside of the worker: configuration, locks and lists of dependencies.

Classes of the hierarchy are not among them, because only the worker reads these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.bounded.loader import BoundedLoader
from kardinal.catalog.errors import CatalogError, Where
from kardinal.edits.yaml.yaml_text import YamlSyntaxError, check_bounds
from kardinal.processes.threads import off_loop

__all__ = ["DOCUMENT_LIMIT", "read_json", "read_yaml", "tree_file", "tree_names"]

DOCUMENT_LIMIT = 5 << 20
"""The maximum size of a document in bytes, as of a class."""
_VALUES = 50_000
_JSON = JsonLimits(size=DOCUMENT_LIMIT)

FOREIGN = ForeignBytes(
    "configuration, locks and lists of dependencies of a catalog",
    of="contributor",
    size=mebibytes(DOCUMENT_LIMIT),
    unpacked="known from the size of the file, which `kardinal/git/trees.py` has bounded",
    structure=f"{_VALUES:,} values and 100 levels of YAML; {_JSON.structure} of JSON",
    time="none: a regular file ends",
    held="one document",
    decoded="thread",
    tests=("catalog/test_documents.py",),
)


def read_yaml(content: bytes, where: Where) -> object:
    """Return the value of a YAML document. Raises `CatalogError` for one that is invalid, large or has a key twice."""
    _check_size(content, where)
    try:
        text = content.decode()
        check_bounds(text, _VALUES)
        loader = BoundedLoader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            for twice in _repeated_keys(node, set()):
                at = replace(where, line=twice.start_mark.line + 1)
                raise CatalogError("invalid", f"the key {twice.value[:60]!r} is there twice", where=at)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except UnicodeDecodeError:
        raise CatalogError("invalid", "it is not text in UTF-8", where=where) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise CatalogError("invalid", error.problem or "it is no YAML", where=replace(where, line=line)) from None
    except YamlSyntaxError as error:
        raise CatalogError("limit", error.message, where=where) from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise CatalogError("invalid", "it is no YAML", where=where) from None


def read_json(content: bytes, where: Where) -> Any:
    """Return the value of a JSON document. Raises `CatalogError`."""
    try:
        return decode(content, _JSON)
    except OverLimit as error:
        raise CatalogError("limit", str(error), where=where) from None
    except NotJson:
        raise CatalogError("invalid", "it is no JSON", where=where) from None


async def tree_file(directory: Path, path: str) -> bytes | None:
    """Return the content of a file of a tree; None if the tree has no such file."""
    return await asyncio.to_thread(_read, directory / path)


async def tree_names(directory: Path, path: str) -> Mapping[str, bool]:
    """Return the names in a directory of a tree, sorted, and whether each is a directory; empty without one."""
    return await asyncio.to_thread(_list, directory / path)


@off_loop
def _read(file: Path) -> bytes | None:
    # Trees hold regular files, directories, and links that stay inside: nothing here waits or has no end.
    return file.read_bytes() if file.is_file() else None


@off_loop
def _list(directory: Path) -> dict[str, bool]:
    if not directory.is_dir():
        return {}
    return {entry.name: entry.is_dir() for entry in sorted(directory.iterdir())}


def _check_size(content: bytes, where: Where) -> None:
    if len(content) > DOCUMENT_LIMIT:
        raise CatalogError("limit", f"it has {len(content):,} bytes; at most {DOCUMENT_LIMIT:,} are read", where=where)


def _repeated_keys(node: yaml.Node, seen: set[int]) -> Iterator[yaml.ScalarNode]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    yield key
                keys.add(key.value)
            yield from _repeated_keys(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated_keys(item, seen)
