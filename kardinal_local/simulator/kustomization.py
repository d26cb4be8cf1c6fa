"""Render kustomizations on machines without `kustomize` and `kubectl` (pure).

This reader supports `resources`, `namespace` and `images`. Every other field is listed in `Rendered.unknown`, because
the rendered objects may be wrong without it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.git import TreeView
from kardinal.objects import JsonObject
from kardinal_local.simulator.inputs import FILE_NAMES

__all__ = ["RenderError", "Rendered", "render"]

_KNOWN = frozenset({"apiVersion", "kind", "metadata", "resources", "namespace", "images"})
DEPTH_LIMIT = 16
"""The maximum depth of kustomizations that refer to other kustomizations."""


class RenderError(Exception):
    """A directory cannot be rendered; the message names the file and the reason."""


@dataclass(slots=True)
class Rendered:
    """The rendered objects of a directory, and the unsupported fields of its kustomizations.

    An entry of `unknown` is for example `environments/dev/kustomization.yaml: patches`.
    """

    objects: list[JsonObject] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


def render(tree: TreeView, path: str) -> Rendered:
    """Return the objects that `kustomize build` would print for `path`, as far as this reader supports it.

    Raises `RenderError`.
    """
    return _render(tree, posixpath.normpath(path), depth=0)


def _render(tree: TreeView, path: str, *, depth: int) -> Rendered:
    if depth > DEPTH_LIMIT:
        raise RenderError(f"{path}: kustomizations refer to each other more than {DEPTH_LIMIT} levels deep")
    name, kustomization = _kustomization(tree, path)
    result = Rendered(unknown=[f"{name}: {key}" for key in kustomization if key not in _KNOWN])
    for entry in kustomization.get("resources") or []:
        target = posixpath.normpath(posixpath.join(path, str(entry)))
        if "://" in str(entry) or target.startswith(".."):
            raise RenderError(f"{name}: resource {entry} is outside the repository")
        if tree.is_dir(target):
            nested = _render(tree, target, depth=depth + 1)
            result.objects += nested.objects
            result.unknown += nested.unknown
            continue
        content = tree.read(target)
        if content is None:
            raise RenderError(f"{name}: resource {entry} does not exist")
        result.objects += _documents(content, target)
    for item in result.objects:
        if namespace := kustomization.get("namespace"):
            item["metadata"]["namespace"] = namespace
        for image in kustomization.get("images") or []:
            _set_image(item, image)
    return result


def _kustomization(tree: TreeView, path: str) -> tuple[str, Mapping[str, Any]]:
    for file in FILE_NAMES:
        name = posixpath.join(path, file)
        content = tree.read(name)
        if content is None:
            continue
        documents = _load(content, name)
        if len(documents) != 1 or not isinstance(documents[0], dict):
            raise RenderError(f"{name}: not a kustomization")
        return name, documents[0]
    raise RenderError(f"{path}: there is no {FILE_NAMES[0]}")


def _documents(content: bytes, name: str) -> Iterator[JsonObject]:
    for document in _load(content, name):
        if not isinstance(document, dict) or "kind" not in document or "name" not in document.get("metadata", {}):
            raise RenderError(f"{name}: a document without kind or metadata.name")
        yield document


def _load(content: bytes, name: str) -> list[Any]:
    try:
        return [manifest.body for manifest in read_manifests(content.decode())]
    except UnicodeDecodeError:
        raise RenderError(f"{name}: not text in UTF-8") from None
    except ManifestError as error:
        raise RenderError(f"{name}: not YAML (line {error.line})") from None


def _set_image(item: JsonObject, entry: Mapping[str, Any]) -> None:
    pod = item.get("spec", {}).get("template", {}).get("spec", {})
    for container in [*pod.get("initContainers", []), *pod.get("containers", [])]:
        repository, tag, digest = _split(container.get("image", ""))
        if repository != entry.get("name"):
            continue
        repository = entry.get("newName") or repository
        if entry.get("digest"):
            tag = ""
            digest = entry["digest"]
        elif entry.get("newTag"):
            tag = str(entry["newTag"])
            digest = ""
        container["image"] = f"{repository}{f':{tag}' if tag else ''}{f'@{digest}' if digest else ''}"


def _split(image: str) -> tuple[str, str, str]:
    rest, _, digest = image.partition("@")
    repository, colon, tag = rest.rpartition(":")
    return (repository, tag, digest) if colon and "/" not in tag else (rest, "", digest)
