"""Rendered manifests as files: one file, or a directory with one file for each object.

File names are derived from the names of objects, such as `deployment-prod-app.yaml`. The repository controls these
names, so only letters, digits, dots and dashes are kept. A directory of rendered manifests belongs to the step: files
in it that were not rendered are deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kardinal.edits.images import ImageChange
from kardinal.edits.kustomize.kustomization import FILE_NAMES
from kardinal.edits.kustomize.manifests import UnreadableManifest, Volume, documents, mapping, text_of
from kardinal.edits.kustomize.reading import read_rendered
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.tree.edit import CHANGES_LIMIT, Changes, EditError, Tree

__all__ = ["OUT", "as_files", "image_changes", "is_directory"]

OUT = "The file that is written, or without `.yaml` at its end the directory, which gets a file for each object."
"""The description of the field `out` of the rendering steps."""

_SEPARATOR = re.compile(rb"^---[ \t]*\r?\n", re.MULTILINE)
_OBJECT = re.compile(rb"^kind:[ \t]*\S", re.MULTILINE)
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9.-]+")
_LONGEST_NAME = 200
_SOURCES = frozenset((*FILE_NAMES, "Chart.yaml"))


def is_directory(out: str) -> bool:
    """Return whether `out` names a directory: every name without `.yaml` or `.yml` at its end."""
    return not out.endswith((".yaml", ".yml"))


def as_files(output: bytes, out: str, tree: Tree) -> Changes:
    """Return the changes that write the rendered manifests to `out`, a path in the repository.

    An output without an object raises `EditError`: a GitOps tool would delete everything in the environment.
    """
    if not _OBJECT.search(output):
        raise EditError(out, "nothing to write: the renderer returned no object", remedy="Look at what it renders")
    if not is_directory(out):
        return {out: output}
    changes: dict[str, bytes | None] = {}
    if tree.is_dir(out):
        changes = dict.fromkeys(_files_below(tree, out))
    for name, content in _named(output):
        changes[f"{out}/{name}"] = content
    return changes


def image_changes(before: bytes | None, after: bytes | None) -> list[ImageChange]:
    """Return the images of rendered manifests that have changed."""
    old = _images(before)
    new = _images(after)
    return [
        ImageChange(name, old.get(name), reference) for name, reference in new.items() if old.get(name) != reference
    ]


def _images(content: bytes | None) -> dict[str, ImageReference]:
    found: dict[str, ImageReference] = {}
    for image in read_rendered(content or b"").images:
        try:
            reference = ImageReference.parse(image.text)
        except ImageReferenceError:
            continue
        found[reference.repository] = reference
    return found


def _files_below(tree: Tree, directory: str) -> Iterator[str]:
    pending = [directory]
    count = 0
    while pending:
        parent = pending.pop()
        for name in tree.entries(parent):
            path = f"{parent}/{name}"
            count += 1
            if count > CHANGES_LIMIT:
                raise EditError(directory, f"holds more than {CHANGES_LIMIT:,} files")
            if name in _SOURCES:
                raise EditError(
                    directory, f"holds {path}", remedy="Name a directory for rendered manifests alone, such as rendered"
                )
            if tree.is_dir(path):
                pending.append(path)
            else:
                yield path


def _named(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each object with its file name; objects of the same kind and name get distinct names."""
    taken: set[str] = set()
    volume = Volume()
    for part in _SEPARATOR.split(output):
        if not part.strip():
            continue
        name = _file_name(part, volume)
        number = 1
        unique = f"{name}.yaml"
        while unique in taken:
            number += 1
            unique = f"{name}-{number}.yaml"
        taken.add(unique)
        yield unique, part


def _file_name(part: bytes, volume: Volume) -> str:
    kind = re.search(rb"^kind: *[\"']?([A-Za-z0-9]+)", part, re.MULTILINE)
    try:
        body = next((mapping(body) for body in documents(part, volume)), {})
    except UnreadableManifest:
        body = {}
    metadata = mapping(body.get("metadata"))
    words = [text_of(body.get("kind")) or (kind[1].decode() if kind else "object")]
    words += [text_of(metadata.get("namespace")), text_of(metadata.get("name"))]
    joined = "-".join(word for word in words if word).lower()
    return _NOT_IN_A_NAME.sub("-", joined)[:_LONGEST_NAME].strip("-.") or "object"
