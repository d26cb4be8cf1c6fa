"""The images that a promotion sets, and how an edit changes them: plain values that edits and texts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kardinal.api import Bundle
from kardinal.api.image import ImageReference, ImageReferenceError, promoted_images
from kardinal.steps.edit import EditError

__all__ = ["ImageChange", "PromotedImage", "images_of", "selected_images"]


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


def selected_images(bundle: Bundle, selected: Sequence[str]) -> tuple[PromotedImage, ...]:
    """Return the images of a Bundle whose artifacts have these names, all of them without names.

    Raises `EditError` for a name that a Bundle of images does not have: promoting nothing would look like a success.
    """
    images = images_of(bundle)
    if not images:
        return ()
    known = {image.name for image in images}
    for name in selected:
        if name not in known:
            named = ", ".join(sorted(filter(None, known))) or "none with a name"
            raise EditError(
                "update.images", f"Bundle {bundle.metadata.name} has no image named {name}", remedy=f"It has {named}"
            )
    return tuple(image for image in images if not selected or image.name in selected)
