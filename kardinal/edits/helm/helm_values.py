"""Set the images of a Bundle among the values of a Helm chart.

A promotion must have an effect: every path must exist, and if a repository stands beside the value, it must be that of
the image. A digest in the Bundle must be written somewhere, because otherwise the environment would run the image that
its tag currently names. `value_doubts` returns the violations of these rules; `set_image_values` sets the values that
can be set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import yaml

from kardinal.edits.helm.values_images import images_in, reference_in, registries_beside, repositories_beside
from kardinal.edits.images import PromotedImage
from kardinal.edits.yaml.document_path import DocumentPath, MappingKey, parse_path
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.document_walk import DocumentError, MissingValue, text_of
from kardinal.edits.yaml.yaml_text import value_of
from kardinal.objects.image_reference import ImageReference

__all__ = ["PINS_DIGEST", "Part", "ValuePath", "digest_doubt", "set_image_values", "value_doubts"]

Part = Literal["tag", "digest", "reference", "repository"]
"""The part of an image that is written at a path."""

_DEFAULT = parse_path("image")
PINS_DIGEST = frozenset[Part]({"digest", "reference"})
"""The parts that contain the digest of an image."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A path among the values, the part written there, and the name or repository of the image if there are several."""

    path: DocumentPath
    part: Part
    image: str = ""


@dataclass(frozen=True, slots=True)
class _Assigned:
    """A path, the image to write there, and the repositories that the values name for this path."""

    place: ValuePath
    reference: ImageReference
    there: Sequence[ImageReference]

    @property
    def spelt(self) -> ImageReference | None:
        """The repository in the spelling of the values; None if they name another one, or none."""
        return next((one for one in self.there if one.same_repository(self.reference)), None)


class _NoPlace(Exception):
    """The values have no place for an image."""


def set_image_values(
    content: bytes, images: Sequence[PromotedImage], paths: Sequence[ValuePath], *, json: bool = False
) -> bytes:
    """Return `content` with the images set at those of `paths` that exist; without `paths`, at the usual place `image`.

    A path for an image that is not promoted is ignored. Raises `DocumentError`.
    """
    file = _values(content, json=json)
    chosen, _, _ = _assignments(file, images, paths)
    return file.edited([update for assigned in chosen for update in _updates(file, assigned)])


def value_doubts(
    content: bytes, images: Sequence[PromotedImage], paths: Sequence[ValuePath], *, json: bool = False
) -> list[str]:
    """Return the reasons why setting the images in `content` would have no effect, or only a part.

    Raises `DocumentError`.
    """
    file = _values(content, json=json)
    chosen, missing, doubts = _assignments(file, images, paths)
    for image in images if chosen or not doubts else ():
        if not any(_may_be(image, place) for place in missing):
            doubts += _incomplete(file, image, chosen, paths)
    return [*doubts, *(doubt for assigned in chosen for doubt in _of_another(assigned, chosen))]


def digest_doubt(
    content: bytes, images: Sequence[PromotedImage], paths: Sequence[ValuePath], *, json: bool = False
) -> str | None:
    """Return why a digest of `images` would not be written to `content`, or None. Raises `DocumentError`."""
    file = _values(content, json=json)
    chosen, _, _ = _assignments(file, images, paths)
    written = {assigned.reference for assigned in chosen if assigned.place.part in PINS_DIGEST}
    lost = (image.reference for image in images if image.reference.digest and image.reference not in written)
    return next(map(_no_digest, lost), None)


def _values(content: bytes, *, json: bool) -> DocumentFile:
    file = DocumentFile.parse(content, json=json)
    if len(file.roots) != 1:
        raise DocumentError(f"has {len(file.roots)} documents; the values of a chart are one")
    return file


def _assignments(
    file: DocumentFile, images: Sequence[PromotedImage], paths: Sequence[ValuePath]
) -> tuple[list[_Assigned], list[ValuePath], list[str]]:
    """Return the paths with their images, the paths that do not exist, and the doubts about the latter."""
    chosen = list[_Assigned]()
    missing = list[ValuePath]()
    doubts = list[str]()
    if not images:
        return chosen, missing, doubts
    try:
        places = paths or _default_paths(file, images)
    except _NoPlace as error:
        return chosen, missing, [str(error)]
    for place in places:
        try:
            assigned = _assigned(file, place, images)
        except MissingValue as error:
            missing.append(place)
            doubts.append(error.message)
        else:
            chosen += [assigned] if assigned is not None else []
    return chosen, missing, doubts


def _default_paths(file: DocumentFile, images: Sequence[PromotedImage]) -> list[ValuePath]:
    root = file.roots[0]
    if len(images) != 1:
        raise DocumentError(
            f"takes {len(images)} images, and which value belongs to which is not said; list them in values"
            f"{_nearest(root)}"
        )
    image = value_of(root, "image") if isinstance(root, yaml.MappingNode) else None
    if image is None:
        raise _NoPlace(f"has no value `image`; list in values where the image is{_nearest(root)}")
    if not isinstance(image, yaml.MappingNode):
        return [ValuePath(_DEFAULT, "reference")]
    parts: list[Part] = ["tag"] if images[0].reference.tag else []
    if value_of(image, "digest") is not None:
        parts.append("digest")
    elif not parts:
        raise _NoPlace(_no_digest(images[0].reference))
    return [ValuePath(DocumentPath((*_DEFAULT.segments, MappingKey(part))), part) for part in parts]


def _assigned(file: DocumentFile, place: ValuePath, images: Sequence[PromotedImage]) -> _Assigned | None:
    """Return the path with its image: the named one, else the only one, else the one that the values name there.

    None if the path is for an image that is not promoted. Raises `MissingValue` if the path does not exist.
    """
    node = file.find(place.path)
    there = _repositories_at(file, place, node)
    if place.image:
        chosen = [image for image in images if _is_named(image, place.image)]
        return _Assigned(place, chosen[0].reference, there) if chosen else None
    chosen = [image for image in images if len(images) == 1 or any(map(image.reference.same_repository, there))]
    if not chosen:
        raise DocumentError(f"{place.path}: say by `image` which of {_listed(images)} it takes")
    return _Assigned(place, chosen[0].reference, there)


def _may_be(image: PromotedImage, place: ValuePath) -> bool:
    return not place.image or _is_named(image, place.image)


def _is_named(image: PromotedImage, name: str) -> bool:
    return name == image.name or image.reference.same_repository(ImageReference(name))


def _repositories_at(file: DocumentFile, place: ValuePath, node: yaml.Node) -> Sequence[ImageReference]:
    if place.part == "reference":
        found = reference_in(text_of(node))
        return [found] if found else []
    return repositories_beside(file.roots[0], place.path)


def _incomplete(
    file: DocumentFile, image: PromotedImage, chosen: Sequence[_Assigned], paths: Sequence[ValuePath]
) -> Iterator[str]:
    """Yield a doubt if no part of an image is written, or its digest is not."""
    parts = {assigned.place.part for assigned in chosen if assigned.reference is image.reference}
    if not parts - {"repository"}:
        others = ", ".join(dict.fromkeys(repr(place.image) for place in paths if place.image)) if not parts else ""
        named = f"; its paths are for {others}" if others else ""
        yield f"has no path for {image.reference}{named}; list one in values{_nearest(file.roots[0])}"
    elif image.reference.digest and not parts & PINS_DIGEST:
        yield _no_digest(image.reference)


def _no_digest(reference: ImageReference) -> str:
    return (
        f"no path takes the digest of {reference}, and a tag alone may mean another image: list a path with "
        "value: digest or value: reference, or promote a tag without a digest"
    )


def _of_another(assigned: _Assigned, chosen: Sequence[_Assigned]) -> Iterator[str]:
    """Yield a doubt if the values name another repository beside the path and the repository is not set as well."""
    place = assigned.place
    renamed = any(other.place.part == "repository" and other.place.path.parent == place.path.parent for other in chosen)
    if assigned.there and not assigned.spelt and not renamed:
        yield (
            f"{place.path} is about {assigned.there[0].repository}, not {assigned.reference.repository}; name another "
            "path, or list its repository as well, with value: repository"
        )


def _updates(file: DocumentFile, assigned: _Assigned) -> Sequence[FieldUpdate]:
    place = assigned.place
    reference = assigned.reference
    node = file.find(place.path)
    if place.part == "repository":
        return [] if assigned.spelt else [FieldUpdate(path=place.path, value=_below_registry(file, assigned))]
    if place.part == "tag":
        # A digest takes precedence over any tag beside it.
        return [FieldUpdate(path=place.path, value=reference.tag)] if reference.tag else []
    if place.part == "digest":
        # If the Bundle has no digest, an old one must be emptied, or it would take precedence over the new tag.
        needed = reference.digest is not None or bool(text_of(node))
        return [FieldUpdate(path=place.path, value=reference.digest or "")] if needed else []
    repository = (assigned.spelt or reference).repository
    return [FieldUpdate(path=place.path, value=str(ImageReference(repository, reference.tag, reference.digest)))]


def _below_registry(file: DocumentFile, assigned: _Assigned) -> str:
    """Return the repository without the registry that the chart puts in front of it."""
    repository = assigned.reference.repository
    path = assigned.place.path
    registries = registries_beside(file.roots[0], path)
    if not registries:
        return repository
    for registry in registries:
        if repository.startswith(f"{registry}/"):
            return repository.removeprefix(f"{registry}/")
    raise DocumentError(f"{path}: {repository} is not in the registry {registries[0]} that stands beside it; change it")


def _nearest(root: yaml.Node) -> str:
    """Return the images that the values do contain, for the end of a message."""
    found = [f"{image.path} ({image.reference})" for image in islice(images_in(root), _SHOWN)]
    return f": there are {', '.join(found)}" if found else ""


def _listed(images: Sequence[PromotedImage]) -> str:
    return ", ".join(image.name or image.reference.repository for image in images[:_SHOWN])
