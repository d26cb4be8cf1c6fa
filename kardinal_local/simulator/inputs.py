"""Find the inputs of rendering a directory: the files and directories it reads, with their Git object ids.

Two commits with the same inputs render to the same objects, so most commits need no rendering. kustomize reads only
files in and below the directory of a kustomization, and other directories with their own kustomization. So the object
ids of all directories that are reached cover all files. In case kustomize reads more, every string of a kustomization
that is an existing path is followed, in whatever field it is.

The inputs are unknown, and the directory is rendered from every commit, if the kustomization refers to a remote or
missing resource, if there is a symbolic link, or if a kustomization cannot be read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from kardinal.edits.yaml.yaml_text import YamlSyntaxError, check_bounds
from kardinal.git import GitError, TreeView
from kardinal.tree.edit import EditError

__all__ = ["FILE_NAMES", "Inputs", "find_inputs", "unchanged"]

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_VALUES_LIMIT = 50_000
"""The maximum number of values in a kustomization."""

Inputs = Mapping[str, str | None]
"""The Git object id by path, or None for a path that does not exist: `{"environments/dev": "4b825d…"}`."""

_NO_PATHS = frozenset(
    {
        "apiVersion",
        "buildMetadata",
        "commonAnnotations",
        "commonLabels",
        "generatorOptions",
        "images",
        "kind",
        "labels",
        "literals",
        "metadata",
        "namePrefix",
        "nameSuffix",
        "namespace",
        "replicas",
        "sortOptions",
        "vars",
    }
)
"""Fields, at any depth, whose strings are never paths."""
_MAYBE_REMOTE = frozenset({"bases", "components", "generators", "resources", "transformers", "validators"})
"""Fields whose entries are URLs if there is no such path in the repository."""


class _Unknown(Exception):
    """The inputs are unknown, because a reference is not in the repository or cannot be followed."""


def find_inputs(tree: TreeView, path: str) -> Inputs | None:
    """Return the inputs of rendering `path`; None if they are unknown."""
    found: dict[str, str | None] = {}
    pending = [posixpath.normpath(path)]
    try:
        while pending:
            directory = pending.pop()
            if directory in found:
                continue
            found[directory] = _identify(tree, directory)
            if any(file.link is not None for file in tree.walk(directory)):
                raise _Unknown
            for reference in _references(tree, directory):
                if tree.is_dir(reference):
                    pending.append(reference)
                elif not reference.startswith(f"{directory}/"):
                    found[reference] = _identify(tree, reference)
    except (EditError, GitError, _Unknown):
        return None
    return found


def unchanged(tree: TreeView, inputs: Inputs) -> bool:
    """Return whether all inputs have the same object ids in `tree`."""
    try:
        return all(tree.identify(path) == known for path, known in inputs.items())
    except (EditError, GitError):
        return False


def _identify(tree: TreeView, path: str) -> str | None:
    if tree.resolve(path) not in (None, "" if path == "." else path):
        # The path goes through a symbolic link, so relative references would be resolved from the wrong directory.
        raise _Unknown
    return tree.identify(path)


def _references(tree: TreeView, directory: str) -> Iterator[str]:
    """Yield the paths in the repository that the kustomization of a directory may read.

    Raises `_Unknown` for a remote reference or an unreadable kustomization.
    """
    for name in FILE_NAMES:
        content = tree.read(posixpath.join(directory, name))
        if content is None:
            continue
        try:
            # This loader returns all scalars as strings.
            decoded = content.decode()
            check_bounds(decoded, _VALUES_LIMIT)
            documents = list(yaml.load_all(decoded, Loader=yaml.CBaseLoader))
        except (UnicodeDecodeError, YamlSyntaxError, yaml.YAMLError):
            raise _Unknown from None
        for document in documents:
            for text, field in _texts(document):
                if "://" in text:
                    raise _Unknown
                target = posixpath.normpath(posixpath.join(directory, text))
                if target.startswith(("..", "/")):
                    continue
                if field in _MAYBE_REMOTE and tree.identify(target) is None:
                    raise _Unknown
                yield target


def _texts(document: Any) -> Iterator[tuple[str, str]]:
    """Yield every string that may be a path, with its top-level field: `("../../base", "resources")`."""
    pending = [(document, "")]
    seen: set[tuple[int, str]] = set()
    while pending:
        value, field = pending.pop()
        if isinstance(value, str):
            # An inline patch has several lines, or is a JSON document.
            if "\n" not in value and not value.startswith(("{", "[")):
                yield value, field
        elif (id(value), field) not in seen:
            # Each value is visited once: nested YAML aliases would otherwise expand without a limit.
            seen.add((id(value), field))
            if isinstance(value, Mapping):
                pending += [(below, field or key) for key, below in value.items() if key not in _NO_PATHS]
            elif isinstance(value, list):
                pending += [(below, field) for below in value]
