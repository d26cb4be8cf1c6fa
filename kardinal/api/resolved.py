"""The digests that the tags of a Bundle had, as its status has them.

A registry may move a tag at any time. What is kept is what it said when the Bundle started; an image whose digest the
Bundle names itself is not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from kardinal.api.bundle import Artifacts, ResolvedImage
from kardinal.api.image import ImageReference, ImageReferenceError, promoted_image

__all__ = ["resolved_image", "unpinned_images", "with_known_digest"]


def unpinned_images(artifacts: Artifacts) -> tuple[ImageReference, ...]:
    """Return the images without a digest, each once; those that cannot be read are left to translation."""
    found: dict[str, ImageReference] = {}
    for image in artifacts.images:
        with suppress(ImageReferenceError):
            reference = promoted_image(image)
            if reference.digest is None:
                found[str(reference)] = reference
    return tuple(found.values())


def resolved_image(reference: ImageReference, known: Sequence[ResolvedImage] | None) -> ResolvedImage | None:
    """Return what is known of the tag of an image; None for one that has a digest or was not asked for."""
    return next((each for each in known or () if each.reference == str(reference)), None)


def with_known_digest(reference: ImageReference, known: Sequence[ResolvedImage] | None) -> ImageReference:
    """Return an image with the digest that its tag had, where that is known."""
    found = resolved_image(reference, known)
    return reference if found is None or found.digest is None else replace(reference, digest=found.digest)
