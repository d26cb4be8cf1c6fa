"""Setting the images of a Bundle among the values of a Helm chart.

A promotion must have an effect, so every path is checked before anything is written: it exists, and where a repository
stands beside it, that is the one of the image. What a Bundle pins must be written somewhere: a digest that no path
takes would leave the environment on whatever its tag means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

import yaml

from kardinal.api.image import ImageReference
from kardinal.steps.document_path import DocumentPath, Key, parse_path
from kardinal.steps.document_text import DocumentFile, Update
from kardinal.steps.document_walk import DocumentError, OtherImage, text_of
from kardinal.steps.images import PromotedImage
from kardinal.steps.values_images import images_in, reference_in, registries_beside, repositories_beside
from kardinal.steps.yaml_text import value_of

__all__ = ["Part", "ValuePath", "set_image_values"]

Part = Literal["tag", "digest", "reference", "repository"]
"""The part of an image that is written at a path."""

_DEFAULT = parse_path("image")
_PINS_DIGEST = frozenset({"digest", "reference"})
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ValuePath:
    """A path among the values, what it takes, and the name or repository of its image if there is a choice."""

    path: DocumentPath
    part: Part
    image: str = ""


@dataclass(frozen=True, slots=True)
class _Assigned:
    """A path with the image that it takes, and the repositories that the values name there."""

    place: ValuePath
    reference: ImageReference
    there: Sequence[ImageReference]

    @property
    def spelt(self) -> ImageReference | None:
        """Return the repository as the values spell it; None if they name another one, or none."""
        return next((one for one in self.there if one.same_repository(self.reference)), None)


def set_image_values(
    content: bytes,
    images: Sequence[PromotedImage],
    paths: Sequence[ValuePath],
    *,
    json: bool = False,
    verified: bool = True,
) -> bytes:
    """Return `content` with the images set at `paths`, or where most charts have them. Raises `DocumentError`.

    `verified`: what stands beside a path must be the repository of the image.
    """
    file = DocumentFile.parse(content, json=json)
    if len(file.roots) != 1:
        raise DocumentError(f"has {len(file.roots)} documents; the values of a chart are one")
    chosen = [_assigned(file, place, images) for place in paths or _default_paths(file, images)]
    for image in images:
        _check_complete(file, image, chosen)
    for assigned in chosen if verified else ():
        _check_repository(assigned, chosen)
    return file.edited([update for assigned in chosen for update in _updates(file, assigned)])


def _default_paths(file: DocumentFile, images: Sequence[PromotedImage]) -> list[ValuePath]:
    root = file.roots[0]
    if len(images) != 1:
        raise DocumentError(
            f"takes {len(images)} images, and which value belongs to which is not said; list them in values"
            f"{_nearest(root)}"
        )
    image = value_of(root, "image") if isinstance(root, yaml.MappingNode) else None
    if image is None:
        raise OtherImage(f"has no value `image`; list in values where the image is{_nearest(root)}")
    if not isinstance(image, yaml.MappingNode):
        return [ValuePath(_DEFAULT, "reference")]
    parts: list[Part] = ["tag"] if images[0].reference.tag else []
    if value_of(image, "digest") is not None:
        parts.append("digest")
    elif not parts:
        raise _no_digest(images[0].reference)
    return [ValuePath(DocumentPath((*_DEFAULT.segments, Key(part))), part) for part in parts]


def _assigned(file: DocumentFile, place: ValuePath, images: Sequence[PromotedImage]) -> _Assigned:
    """Return the path with the image it names, else the only one, else the one that stands there."""
    there = _repositories_at(file, place)
    if place.image:
        chosen = [image for image in images if _is_named(image, place.image)]
        if not chosen:
            raise DocumentError(f"{place.path}: the image {place.image!r} is not promoted here, but {_listed(images)}")
    else:
        chosen = [image for image in images if len(images) == 1 or any(map(image.reference.same_repository, there))]
        if not chosen:
            raise DocumentError(f"{place.path}: say by `image` which of {_listed(images)} it takes")
    return _Assigned(place, chosen[0].reference, there)


def _is_named(image: PromotedImage, name: str) -> bool:
    return name == image.name or image.reference.same_repository(ImageReference(name))


def _repositories_at(file: DocumentFile, place: ValuePath) -> Sequence[ImageReference]:
    if place.part == "reference":
        found = reference_in(text_of(file.find(place.path)))
        return [found] if found else []
    return repositories_beside(file.roots[0], place.path)


def _check_complete(file: DocumentFile, image: PromotedImage, chosen: Sequence[_Assigned]) -> None:
    """Raise for an image of which nothing is written, or a digest that nothing takes."""
    parts = {assigned.place.part for assigned in chosen if assigned.reference is image.reference}
    if not parts - {"repository"}:
        raise OtherImage(f"has no path for {image.reference}; list one in values{_nearest(file.roots[0])}")
    if image.reference.digest and not parts & _PINS_DIGEST:
        raise _no_digest(image.reference)


def _no_digest(reference: ImageReference) -> DocumentError:
    return DocumentError(
        f"no path takes the digest of {reference}, and a tag alone may mean another image: list a path with "
        "value: digest or value: reference, or promote a tag without a digest"
    )


def _check_repository(assigned: _Assigned, chosen: Sequence[_Assigned]) -> None:
    """Raise where the values name another repository, and are not to name this one."""
    place = assigned.place
    renamed = any(other.place.part == "repository" and other.place.path.parent == place.path.parent for other in chosen)
    if assigned.there and not assigned.spelt and not renamed:
        raise OtherImage(
            f"{place.path} is about {assigned.there[0].repository}, not {assigned.reference.repository}; name another "
            "path, or list its repository as well, with value: repository"
        )


def _updates(file: DocumentFile, assigned: _Assigned) -> Sequence[Update]:
    place, reference = assigned.place, assigned.reference
    node = file.find(place.path)
    if place.part == "repository":
        return [] if assigned.spelt else [Update(path=place.path, value=_below_registry(file, assigned))]
    if place.part == "tag":
        # A digest decides whatever tag stands beside it.
        return [Update(path=place.path, value=reference.tag)] if reference.tag else []
    if place.part == "digest":
        # Without one in the Bundle, an old digest would go on deciding.
        needed = reference.digest is not None or bool(text_of(node))
        return [Update(path=place.path, value=reference.digest or "")] if needed else []
    repository = (assigned.spelt or reference).repository
    return [Update(path=place.path, value=str(ImageReference(repository, reference.tag, reference.digest)))]


def _below_registry(file: DocumentFile, assigned: _Assigned) -> str:
    """Return the repository without the registry that the chart joins to it."""
    repository, path = assigned.reference.repository, assigned.place.path
    registries = registries_beside(file.roots[0], path)
    if not registries:
        return repository
    for registry in registries:
        if repository.startswith(f"{registry}/"):
            return repository.removeprefix(f"{registry}/")
    raise DocumentError(f"{path}: {repository} is not in the registry {registries[0]} that stands beside it; change it")


def _nearest(root: yaml.Node) -> str:
    """Return the images that the values do hold, for the end of a message."""
    found = [f"{image.path} ({image.reference})" for image in islice(images_in(root), _SHOWN)]
    return f": there are {', '.join(found)}" if found else ""


def _listed(images: Sequence[PromotedImage]) -> str:
    return ", ".join(image.name or image.reference.repository for image in images[:_SHOWN])
