"""Find container images among the values of a Helm chart, or in any other document.

Charts write an image in three ways: as one reference; as a mapping of `repository` and `tag`, optionally with `digest`
and `registry`; and with a registry for all images under `global`. Two spellings of the same repository are the same
image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from kardinal.edits.yaml.document_path import DocumentPath, ListIndex, MappingKey, parse_path
from kardinal.edits.yaml.document_walk import find, text_of
from kardinal.edits.yaml.yaml_text import value_of
from kardinal.objects.image_reference import ImageReference, ImageReferenceError

__all__ = ["FoundImage", "images_in", "reference_in", "registries_beside", "repositories_beside"]

_REPOSITORY_KEYS = ("repository", "image", "name")
_GLOBAL_REGISTRIES = tuple(map(parse_path, ("global.imageRegistry", "global.image.registry", "imageRegistry")))
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image, and the path of its reference or of its mapping."""

    path: DocumentPath
    reference: ImageReference


def images_in(root: yaml.Node) -> Iterator[FoundImage]:
    """Yield the images of a document in order: mappings with a repository, and references under a key `image`."""
    pending: list[tuple[yaml.Node, tuple[MappingKey | ListIndex, ...]]] = [(root, ())]
    seen: set[int] = set()
    while pending:
        node, at = pending.pop()
        if id(node) in seen or len(at) > _MAX_DEPTH:
            continue
        seen.add(id(node))
        found = _image_at(root, node, at)
        if found is not None:
            yield FoundImage(DocumentPath(at), found)
        pending.extend(reversed(list(_inside(node, at))))


def reference_in(text: str | None) -> ImageReference | None:
    """Parse a reference; None if the text is not one."""
    try:
        return ImageReference.parse(text) if text else None
    except ImageReferenceError:
        return None


def repositories_beside(root: yaml.Node, path: DocumentPath) -> list[ImageReference]:
    """Return the repositories that the value at `path` may belong to, the most likely first; empty if none is named.

    A chart puts a registry in front of the repository beside the value: the one beside it, or one for all images.
    """
    parent = find(root, path.parent)
    if not isinstance(parent, yaml.MappingNode):
        return []
    last = path.segments[-1]
    keys = [key for key in _REPOSITORY_KEYS if not (isinstance(last, MappingKey) and last.name == key)]
    for key in keys:
        text = text_of(value_of(parent, key))
        found = reference_in(text)
        # A key `name` usually names something else than an image.
        if text and found is not None and (key != "name" or "/" in text):
            registries = registries_beside(root, path)
            joined = [ImageReference(f"{registry}/{found.repository}") for registry in registries]
            return joined if value_of(parent, "registry") is not None and joined else [*joined, found]
    return []


def registries_beside(root: yaml.Node, path: DocumentPath) -> list[str]:
    """Return the registries that a chart may put before the repository beside `path`: its own, or the global ones."""
    own = text_of(find(root, path.sibling("registry")))
    found = [own] if own else [text_of(find(root, each)) for each in _GLOBAL_REGISTRIES]
    return [registry.rstrip("/") for registry in found if registry]


def _image_at(root: yaml.Node, node: yaml.Node, at: tuple[MappingKey | ListIndex, ...]) -> ImageReference | None:
    if isinstance(node, yaml.ScalarNode):
        is_image = bool(at) and isinstance(at[-1], MappingKey) and at[-1].name == "image"
        found = reference_in(text_of(node)) if is_image else None
        return found if found and (found.tag or found.digest) else None
    if not isinstance(node, yaml.MappingNode) or text_of(value_of(node, "repository")) is None:
        return None
    tag, digest = (text_of(value_of(node, key)) for key in ("tag", "digest"))
    if tag is None and digest is None:
        return None
    beside = repositories_beside(root, DocumentPath((*at, MappingKey("tag"))))
    return ImageReference(beside[0].repository, tag or None, digest or None) if beside else None


def _inside(
    node: yaml.Node, at: tuple[MappingKey | ListIndex, ...]
) -> Iterator[tuple[yaml.Node, tuple[MappingKey | ListIndex, ...]]]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield value, (*at, MappingKey(name.value))
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield item, (*at, ListIndex(position))
