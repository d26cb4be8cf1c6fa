"""The images that a promotion sets, as plain values that edits and texts share."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.edits.images import PromotedImage
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import promoted_images
from kardinal.tree.edit import EditError

__all__ = ["images_of", "select", "selected_images", "selection_problem"]


def images_of(bundle: Bundle) -> tuple[PromotedImage, ...]:
    """Return the images of a Bundle with their references; raises `ImageReferenceError` that names the Bundle."""
    artifacts = bundle.spec.artifacts
    try:
        references = promoted_images(artifacts)
    except ImageReferenceError as error:
        raise ImageReferenceError(f"Bundle {bundle.metadata.name}: {error}") from error
    return tuple(
        PromotedImage(image.name, reference) for image, reference in zip(artifacts.images, references, strict=True)
    )


def selected_images(bundle: Bundle, selected: Sequence[str]) -> tuple[PromotedImage, ...]:
    """Return the images of a Bundle that the names or repositories in `selected` select; all if it is empty.

    Raises `EditError` for an entry that selects no image, unless the Bundle has none: it would look like a success.
    """
    images = images_of(bundle)
    if not images or not selected:
        return images
    chosen = set[PromotedImage]()
    for entry in selected:
        found = select(images, entry)
        if not found:
            known = ", ".join(sorted(map(_shown, images)))
            raise EditError(
                "update.images",
                f"Bundle {bundle.metadata.name} has no image of the name or repository {entry}",
                remedy=f"It has {known}",
            )
        chosen.update(found)
    return tuple(image for image in images if image in chosen)


def select(images: Sequence[PromotedImage], entry: str) -> tuple[PromotedImage, ...]:
    """Return the images that an entry of `update.images` selects: by their name, or else by their repository."""
    named = tuple(image for image in images if image.name == entry)
    if named:
        return named
    try:
        reference = ImageReference.parse(entry)
    except ImageReferenceError:
        return ()
    if reference.tag or reference.digest:
        return ()
    return tuple(image for image in images if image.reference.same_repository(reference))


def selection_problem(entry: str) -> str | None:
    """Return why an entry of `update.images` can never select an image; None if it can."""
    try:
        reference = ImageReference.parse(entry)
    except ImageReferenceError:
        return None  # A name may have any characters.
    if not reference.tag and not reference.digest:
        return None
    return f"{entry} has a version, which the Bundle chooses: write {reference.repository}, or the name of the image"


def _shown(image: PromotedImage) -> str:
    return f"{image.name} ({image.reference.repository})" if image.name else image.reference.repository
