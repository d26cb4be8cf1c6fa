"""The images and versions of a Bundle, as references for manifests and as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kardinal.objects import JsonObject
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.text import cut, printable

if TYPE_CHECKING:
    from kardinal.promotion.api.bundle import Artifacts, Image

__all__ = [
    "bundle_title",
    "bundle_version",
    "bundle_versions",
    "image_problems",
    "promoted_image",
    "promoted_images",
    "stored_title",
    "stored_version",
    "stored_versions",
]

_SHORT_COMMIT = 7

_SHOWN_VERSIONS = 8
_VERSIONS_LIMIT = 600
"""The most artifacts in one line of versions, and the most characters of this line."""


def promoted_image(image: Image) -> ImageReference:
    """Return the reference that a Bundle promotes. Raises `ImageReferenceError`."""
    return _promoted(image.reference, image.digest)


def _promoted(text: str, digest: str | None) -> ImageReference:
    """Parse a reference. `digest` takes precedence over a digest in it; a tag or a digest is required."""
    reference = ImageReference.parse(text)
    if digest:
        reference = reference.with_digest(digest)
    if not reference.tag and not reference.digest:
        raise ImageReferenceError(
            f"image reference {cut(text, 120)!r} names no version: add a tag or a digest, such as {text}:1.2.3"
        )
    return reference


def promoted_images(artifacts: Artifacts) -> tuple[ImageReference, ...]:
    """Return every image of a Bundle. Raises `ImageReferenceError` with the field of the invalid one."""
    found: list[ImageReference] = []
    for index, image in enumerate(artifacts.images):
        try:
            found.append(promoted_image(image))
        except ImageReferenceError as error:
            raise ImageReferenceError(f"spec.artifacts.images[{index}]: {error}") from error
    return tuple(found)


def image_problems(artifacts: Artifacts) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each image that cannot be promoted; the field is relative to the spec of a Bundle."""
    for index, image in enumerate(artifacts.images):
        try:
            promoted_image(image)
        except ImageReferenceError as error:
            yield f"artifacts.images[{index}]", str(error)


def bundle_version(artifacts: Artifacts) -> str:
    """Return the version of a Bundle for people, by the rules of `stored_version`."""
    return stored_version(artifacts.to_json())


def stored_version(artifacts: JsonObject) -> str:
    """Return the tag of the first image, else its short digest; else the version of the first chart, else a commit.

    `artifacts` is the JSON of an API server. An invalid image, which translation would refuse, is returned as it is,
    because a list of Bundles must be able to show it.
    """
    if images := artifacts.get("images"):
        try:
            return _promoted(images[0]["reference"], images[0].get("digest")).version
        except ImageReferenceError:
            return str(images[0]["reference"])
    if charts := artifacts.get("charts"):
        return str(charts[0]["version"])
    commit: JsonObject = artifacts.get("gitCommit") or {}
    return str(commit.get("sha", ""))[:_SHORT_COMMIT]


def bundle_title(artifacts: Artifacts) -> str:
    """Return the version of a Bundle and the number of its other artifacts: `1.2.0 (+2)`; see `stored_title`."""
    return stored_title(artifacts.to_json())


def stored_title(artifacts: JsonObject) -> str:
    """Return the version of stored artifacts and the number of the artifacts after the first: `1.2.0 (+2)`."""
    more = len(artifacts.get("images") or ()) + len(artifacts.get("charts") or ()) - 1
    more += 1 if artifacts.get("gitCommit") else 0
    version = stored_version(artifacts)
    return f"{version} (+{more})" if version and more > 0 else version


def stored_versions(artifacts: JsonObject) -> str:
    """Return the versions of all stored artifacts for people: `1.2.0`, or of several `app:1.2.0, worker:2.1`."""
    labelled = [*map(_labelled, artifacts.get("images") or ())]
    labelled += [f"{chart['name']}:{chart['version']}" for chart in artifacts.get("charts") or ()]
    if commit := artifacts.get("gitCommit"):
        labelled.append(f"config:{str(commit.get('sha', ''))[:_SHORT_COMMIT]}")
    if len(labelled) < 2:
        return stored_version(artifacts)
    shown = labelled[:_SHOWN_VERSIONS]
    more = [f"+{len(labelled) - len(shown)}"] if len(labelled) > len(shown) else []
    return cut(printable(", ".join([*shown, *more])), _VERSIONS_LIMIT)


def bundle_versions(artifacts: Artifacts) -> str:
    """Return the versions of all artifacts of a Bundle for people, by the rules of `stored_versions`."""
    return stored_versions(artifacts.to_json())


def _labelled(image: JsonObject) -> str:
    """Return an image as `name:version`; without a name, the last part of its repository stands for it."""
    try:
        reference = _promoted(image["reference"], image.get("digest"))
    except ImageReferenceError:
        return str(image["reference"])
    return f"{image.get('name') or reference.repository.rpartition('/')[2]}:{reference.version}"
