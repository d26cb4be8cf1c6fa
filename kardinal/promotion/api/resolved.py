"""The digests that the tags of a Bundle had, as recorded in its status.

A registry may move a tag at any time. The record keeps the answer from the start of the Bundle. An image whose digest
the Bundle names itself is not looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api.bundle import Artifacts, ResolvedImage
from kardinal.promotion.api.image import promoted_image

__all__ = ["resolved_image", "unpinned_images", "with_known_digest"]


def unpinned_images(artifacts: Artifacts) -> tuple[ImageReference, ...]:
    """Return the images without a digest, each once. Invalid references are left out; translation reports them."""
    found: dict[str, ImageReference] = {}
    for image in artifacts.images:
        with suppress(ImageReferenceError):
            reference = promoted_image(image)
            if reference.digest is None:
                found[str(reference)] = reference
    return tuple(found.values())


def resolved_image(reference: ImageReference, known: Sequence[ResolvedImage] | None) -> ResolvedImage | None:
    """Return the record for the tag of an image; None if the image has a digest or its tag was not looked up."""
    return next((each for each in known or () if each.reference == str(reference)), None)


def with_known_digest(reference: ImageReference, known: Sequence[ResolvedImage] | None) -> ImageReference:
    """Return an image with the recorded digest of its tag, if there is one."""
    found = resolved_image(reference, known)
    return reference if found is None or found.digest is None else replace(reference, digest=found.digest)
