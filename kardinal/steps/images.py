"""The images that a promotion sets, and how an edit changes them: plain values that edits and texts share."""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.api import Bundle
from kardinal.api.image import ImageReference, ImageReferenceError, promoted_images

__all__ = ["ImageChange", "PromotedImage", "images_of"]


@dataclass(frozen=True, slots=True)
class PromotedImage:
    """An artifact of a Bundle: its name there, and the reference it promotes."""

    name: str
    reference: ImageReference


@dataclass(frozen=True, slots=True)
class ImageChange:
    """The image that one entry of a file sets after an edit, and before; `before` is None where there was no entry."""

    name: str
    before: ImageReference | None
    after: ImageReference


def images_of(bundle: Bundle) -> tuple[PromotedImage, ...]:
    """Return the images of a Bundle as manifests name them; raises `ImageReferenceError` that names the Bundle."""
    artifacts = bundle.spec.artifacts
    try:
        references = promoted_images(artifacts)
    except ImageReferenceError as error:
        raise ImageReferenceError(f"Bundle {bundle.metadata.name}: {error}") from error
    return tuple(
        PromotedImage(image.name, reference) for image, reference in zip(artifacts.images, references, strict=True)
    )
