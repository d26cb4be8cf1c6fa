"""Finding container images among the values of a Helm chart, or in any other document.

Charts write an image in three ways: as one reference; as a mapping of `repository` and `tag`, with `digest` and
`registry` where they have them; and with a registry for all images under `global`. Two spellings of one repository are
one image.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from kardinal.api.image import ImageReference, ImageReferenceError
from kardinal.steps.document_path import DocumentPath, Index, Key, parse_path
from kardinal.steps.document_walk import find, text_of
from kardinal.steps.yaml_text import value_of

__all__ = ["FoundImage", "images_in", "reference_in", "registries_beside", "repositories_beside"]

_REPOSITORY_KEYS = ("repository", "image", "name")
_GLOBAL_REGISTRIES = tuple(map(parse_path, ("global.imageRegistry", "global.image.registry", "imageRegistry")))
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image, and where it stands: a reference, or a mapping with a repository."""

    path: DocumentPath
    reference: ImageReference


def images_in(root: yaml.Node) -> Iterator[FoundImage]:
    """Yield the images of a document in their order: what has a repository, and references under a key `image`."""
    pending: list[tuple[yaml.Node, tuple[Key | Index, ...]]] = [(root, ())]
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
    """Read a reference; None for text that is none."""
    try:
        return ImageReference.parse(text) if text else None
    except ImageReferenceError:
        return None


def repositories_beside(root: yaml.Node, path: DocumentPath) -> list[ImageReference]:
    """Return the repositories that the value at `path` may belong to, the likeliest first; empty if it is not said.

    A chart joins a registry to the repository that stands beside the value, or one that is set for all images.
    """
    parent = find(root, path.parent)
    if not isinstance(parent, yaml.MappingNode):
        return []
    last = path.segments[-1]
    keys = [key for key in _REPOSITORY_KEYS if not (isinstance(last, Key) and last.name == key)]
    for key in keys:
        text = text_of(value_of(parent, key))
        found = reference_in(text)
        # `name` is mostly that of something else.
        if text and found is not None and (key != "name" or "/" in text):
            registries = registries_beside(root, path)
            joined = [ImageReference(f"{registry}/{found.repository}") for registry in registries]
            return joined if value_of(parent, "registry") is not None and joined else [*joined, found]
    return []


def registries_beside(root: yaml.Node, path: DocumentPath) -> list[str]:
    """Return the registries that a chart may join to the repository beside `path`: its own one, else those for all."""
    own = text_of(find(root, path.sibling("registry")))
    found = [own] if own else [text_of(find(root, each)) for each in _GLOBAL_REGISTRIES]
    return [registry.rstrip("/") for registry in found if registry]


def _image_at(root: yaml.Node, node: yaml.Node, at: tuple[Key | Index, ...]) -> ImageReference | None:
    if isinstance(node, yaml.ScalarNode):
        is_image = bool(at) and isinstance(at[-1], Key) and at[-1].name == "image"
        found = reference_in(text_of(node)) if is_image else None
        return found if found and (found.tag or found.digest) else None
    if not isinstance(node, yaml.MappingNode) or text_of(value_of(node, "repository")) is None:
        return None
    tag, digest = (text_of(value_of(node, key)) for key in ("tag", "digest"))
    if tag is None and digest is None:
        return None
    beside = repositories_beside(root, DocumentPath((*at, Key("tag"))))
    return ImageReference(beside[0].repository, tag or None, digest or None) if beside else None


def _inside(node: yaml.Node, at: tuple[Key | Index, ...]) -> Iterator[tuple[yaml.Node, tuple[Key | Index, ...]]]:
    if isinstance(node, yaml.MappingNode):
        for name, value in node.value:
            if isinstance(name, yaml.ScalarNode):
                yield value, (*at, Key(name.value))
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield item, (*at, Index(position))
