"""Write images by digest: the images to which `update.pinDigest` applies, and their digests (pure).

A Bundle that names an image by its tag gets the digest that the controller recorded in `status.artifacts` when the
Bundle started. Edits, texts and the proof then see a Bundle with digests, and need no code of their own for it. An
image whose digest is unknown is never written by its tag instead: the environment waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from kardinal.edits.images import PromotedImage
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import promoted_image
from kardinal.promotion.api.pipeline import StepSpec, Update
from kardinal.promotion.api.resolved import resolved_image, with_known_digest
from kardinal.promotion.steps.images import select
from kardinal.promotion.steps.kustomize_set_image import KUSTOMIZE_SET_IMAGE

__all__ = ["images_by_tag", "pinned", "undetermined"]


def pinned(bundle: Bundle, update: Update, steps: Sequence[StepSpec]) -> Bundle:
    """Return `bundle` for an environment: with `update.pinDigest`, its tags get the digests that are recorded for them.

    A digest in the Bundle itself is never replaced.
    """
    if not update.pin_digest:
        return bundle
    known = {
        index: with_known_digest(reference, bundle.status.artifacts).digest
        for index, reference in _taken_by_tag(bundle, update, steps)
    }
    images = tuple(
        image.model_copy(update={"digest": known[index]}) if known.get(index) else image
        for index, image in enumerate(bundle.spec.artifacts.images)
    )
    artifacts = bundle.spec.artifacts.model_copy(update={"images": images})
    return bundle.model_copy(update={"spec": bundle.spec.model_copy(update={"artifacts": artifacts})})


def images_by_tag(bundle: Bundle, update: Update, steps: Sequence[StepSpec]) -> list[ImageReference]:
    """Return the images without a digest in the Bundle that an environment with `update.pinDigest` takes."""
    if not update.pin_digest:
        return []
    return [reference for _, reference in _taken_by_tag(bundle, update, steps)]


def undetermined(bundle: Bundle, update: Update, steps: Sequence[StepSpec]) -> str | None:
    """Return the message about a digest for which `update.pinDigest` waits; None if all digests are known."""
    for reference in images_by_tag(pinned(bundle, update, steps), update, steps):
        found = resolved_image(reference, bundle.status.artifacts)
        if found is None:
            why = (
                "no registry was asked for it when the Bundle started; create a Bundle that names the digest, or one "
                "where the controller runs with --allow-registries"
            )
        else:
            why = f"{found.message or 'its registry gave no answer'}; looked up again every minute"
        return f"waits for the digest of {reference}, by which it is to be written (update.pinDigest): {why}"
    return None


def _taken_by_tag(bundle: Bundle, update: Update, steps: Iterable[StepSpec]) -> Iterator[tuple[int, ImageReference]]:
    """Yield the index and reference of each image without a digest that an environment takes.

    An invalid reference is left out; translation reports it.
    """
    images: dict[int, PromotedImage] = {}
    for index, image in enumerate(bundle.spec.artifacts.images):
        with suppress(ImageReferenceError):
            images[index] = PromotedImage(image.name, promoted_image(image))
    entries = _entries(update, steps)
    taken = {image for entry in entries for image in select([*images.values()], entry)}
    for index, promoted in images.items():
        if promoted.reference.digest is None and (not entries or promoted in taken):
            yield index, promoted.reference


def _entries(update: Update, steps: Iterable[StepSpec]) -> frozenset[str]:
    """Return the names and repositories of the images that an environment takes.

    Empty if the environment takes all images, or if the selection is not known yet because it has expressions.
    """
    names = [*update.images]
    for step in steps if names else ():
        chosen = (step.config or {}).get("images") if step.uses == KUSTOMIZE_SET_IMAGE.name else None
        if chosen is not None and (not isinstance(chosen, list) or any("${" in str(name) for name in chosen)):
            return frozenset()
        names += map(str, chosen or ())
    return frozenset(names)
