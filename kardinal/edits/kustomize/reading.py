"""The images that a kustomization renders, and the reasons why the list may be incomplete or wrong.

Images are texts, because kustomize compares texts. `before` is the text to which the kustomization's own `images`
apply: an entry applies if its name has the same spelling. Values of HelmReleases are read as well, because an image
that is set there is the usual reason why setting it in the kustomization has no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kardinal.edits.kustomize.layers import Accumulated, Layers, fields_of
from kardinal.edits.kustomize.manifests import Mapping, UnreadableManifest, Value, Volume, documents, mapping, text_of
from kardinal.edits.kustomize.patches import PatchedResource
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.text import cut
from kardinal.tree.edit import EditError, Tree

__all__ = ["ChartValue", "Reading", "RenderedImage", "read_kustomization", "read_rendered"]

_LONGEST_KEY = 80
_REPOSITORY_KEYS = ("repository", "registry", "tag", "digest")


@dataclass(frozen=True, slots=True)
class RenderedImage:
    """An image that a container would run: its text, the text before the top `images` apply, and its place."""

    text: str
    before: str
    place: str


@dataclass(frozen=True, slots=True)
class ChartValue:
    """An image in the values of a HelmRelease."""

    reference: ImageReference
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The images that a kustomization renders.

    `missing`: reasons why there may be more images. `uncertain`: reasons why these images may be wrong. `roots`: the
    directories with a kustomization that take part. `unread`: those of them that could not be read. `remote` and
    `helm`: references that a renderer would fetch, and charts that it would inflate. `closed`: reasons why a file that
    takes part was not completely read, so that a renderer might do something that cannot be foreseen here.
    """

    images: tuple[RenderedImage, ...] = ()
    values: tuple[ChartValue, ...] = ()
    missing: tuple[str, ...] = ()
    uncertain: tuple[str, ...] = ()
    remote: tuple[str, ...] = ()
    helm: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[str, ...]:
        """Return the reasons why the rendered images are not known for sure."""
        return (*self.missing, *self.uncertain)


def read_kustomization(tree: Tree, path: str) -> Reading:
    """Return the images that the kustomization in the directory `path` renders.

    No content of the repository makes it raise.
    """
    layers = Layers(tree)
    before: list[str] = []
    found = Accumulated()
    directory = "/".join(part for part in path.split("/") if part not in ("", "."))

    def note(so_far: Accumulated) -> None:
        before.extend(field.text for field in fields_of(so_far))

    try:
        found = layers.kustomization(directory, before_images=note)
    except (UnreadableManifest, EditError) as error:
        layers.unread.append(directory)
        layers.uncertain.append(str(error))
        layers.closed.append(str(error))
    except RecursionError:
        layers.unread.append(directory)
        layers.uncertain.append("the manifests are nested too deeply")
        layers.closed.append("the manifests are nested too deeply")
    return Reading(
        images=tuple(_images(found, before, layers.missing)),
        values=tuple(_chart_values(found.resources)),
        missing=tuple(dict.fromkeys(layers.missing)),
        uncertain=tuple(dict.fromkeys(layers.uncertain)),
        remote=tuple(dict.fromkeys(layers.remote)),
        helm=tuple(layers.helm),
        roots=tuple(layers.roots),
        unread=tuple(dict.fromkeys(layers.unread)),
        closed=tuple(dict.fromkeys(layers.closed)),
    )


def read_rendered(output: bytes) -> Reading:
    """Return the images in manifests that a renderer has written."""
    found = Accumulated()
    uncertain: list[str] = []
    try:
        bodies = [mapping(body) for body in documents(output, Volume())]
        found.resources = [PatchedResource(body, "rendered") for body in bodies]
    except UnreadableManifest as error:
        uncertain.append(f"what was rendered cannot be read: {error}")
    images = tuple(RenderedImage(field.text, field.text, field.owner) for field in fields_of(found))
    return Reading(images=images, values=tuple(_chart_values(found.resources)), uncertain=tuple(uncertain))


def _images(found: Accumulated, before: list[str], missing: list[str]) -> Iterator[RenderedImage]:
    fields = [*fields_of(found)]
    for index, field in enumerate(fields):
        if "$(" in field.text:
            missing.append(f"{field.owner} has an image with a variable")
        yield RenderedImage(field.text, before[index] if index < len(before) else field.text, field.owner)


def _chart_values(resources: list[PatchedResource]) -> Iterator[ChartValue]:
    for resource in resources:
        if resource.kind == "HelmRelease":
            values = mapping(resource.body.get("spec")).get("values")
            for path, reference in _references(values, "values"):
                yield ChartValue(reference, f"{path} of {resource.title} ({resource.file})")


def _references(value: Value, path: str) -> Iterator[tuple[str, ImageReference]]:
    """Yield values that look like an image: a whole reference, or a repository with a tag or digest beside it."""
    pending: list[tuple[str, Value]] = [(path, value)]
    while pending:
        where, one = pending.pop()
        if isinstance(one, list):
            pending += ((f"{where}[{index}]", item) for index, item in enumerate(one))
        elif isinstance(one, dict):
            if reference := _taken_apart(one):
                yield where, reference
            pending += (
                (f"{where}.{cut(key, _LONGEST_KEY)}", item) for key, item in one.items() if key not in _REPOSITORY_KEYS
            )
        elif isinstance(one, str) and ("/" in one or where.endswith("mage")) and (reference := _parsed(one)):
            yield where, reference


def _taken_apart(value: Mapping) -> ImageReference | None:
    repository, registry, tag, digest = (text_of(value.get(key)) for key in _REPOSITORY_KEYS)
    if not repository:
        return None
    name = f"{registry}/{repository}" if registry else repository
    return _parsed(name + (f":{tag}" if tag else "") + (f"@{digest}" if digest else ""))


def _parsed(text: str) -> ImageReference | None:
    try:
        return ImageReference.parse(text) if len(text) <= 512 else None
    except ImageReferenceError:
        return None
