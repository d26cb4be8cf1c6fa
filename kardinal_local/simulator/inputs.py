"""The inputs of rendering a directory, by the ids that Git gives to content.

Two commits in which these are the same render to the same, so that most commits need no rendering. kustomize reads
files in and below the directory of a kustomization alone, and of other places only directories with a kustomization
of their own: the ids of all directories that are reached stand for everything. To be right where it does more, every
text of a kustomization that is the path of something is followed, whatever field it stands in.

What cannot be told from the repository has no inputs and is rendered from every commit: something remote, something
that is not there, a symbolic link, a kustomization that cannot be read.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from kardinal.git import GitError, TreeView
from kardinal.steps.edit import EditError
from kardinal.steps.yaml_text import YamlSyntaxError, check_bounds

__all__ = ["FILE_NAMES", "Inputs", "find_inputs", "unchanged"]

FILE_NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_VALUES_LIMIT = 50_000
"""Values of a kustomization."""

Inputs = Mapping[str, str | None]
"""Path -> the id of what is there, or None where nothing is."""

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
"""Fields, at any depth, whose texts name neither files nor directories."""
_MAYBE_REMOTE = frozenset({"bases", "components", "generators", "resources", "transformers", "validators"})
"""Fields whose entries are looked for elsewhere when there is no such path."""


class _Unknown(Exception):
    """Something is read that the repository does not hold, or cannot be followed."""


def find_inputs(tree: TreeView, path: str) -> Inputs | None:
    """Return what rendering `path` reads; None when that cannot be told."""
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
    """Return whether what was read is the same in `tree`."""
    try:
        return all(tree.identify(path) == known for path, known in inputs.items())
    except (EditError, GitError):
        return False


def _identify(tree: TreeView, path: str) -> str | None:
    if tree.resolve(path) not in (None, "" if path == "." else path):
        # What stands beside a link is not what stands beside its target.
        raise _Unknown
    return tree.identify(path)


def _references(tree: TreeView, directory: str) -> Iterator[str]:
    """Yield the paths that the kustomization of a directory may read, inside of the repository."""
    for name in FILE_NAMES:
        content = tree.read(posixpath.join(directory, name))
        if content is None:
            continue
        try:
            # Every value is a text to this loader, as it is written.
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
    """Yield every text that may be a path, with the outermost field it stands in."""
    pending = [(document, "")]
    seen: set[tuple[int, str]] = set()
    while pending:
        value, field = pending.pop()
        if isinstance(value, str):
            # A patch in place has several lines, or is a JSON document.
            if "\n" not in value and not value.startswith(("{", "[")):
                yield value, field
        elif (id(value), field) not in seen:
            # A few aliases of aliases stand for more than can be walked.
            seen.add((id(value), field))
            if isinstance(value, Mapping):
                pending += [(below, field or key) for key, below in value.items() if key not in _NO_PATHS]
            elif isinstance(value, list):
                pending += [(below, field) for below in value]
