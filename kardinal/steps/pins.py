"""Writing images by digest: which images of a Bundle `update.pinDigest` is about, and what it makes of them (pure).

A Bundle that names an image by its tag is given the digest that the controller noted in `status.artifacts` when the
Bundle started. Edits, texts and the proof then see a Bundle that names digests, and need to know nothing of it. An
image whose digest is not known is never written by its tag instead: the environment waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from kardinal.api import Bundle
from kardinal.api.image import ImageReference, ImageReferenceError, promoted_image
from kardinal.api.pipeline import StepSpec, Update
from kardinal.api.resolved import resolved_image, with_known_digest
from kardinal.steps.images import PromotedImage, select
from kardinal.steps.kustomize_set_image import KUSTOMIZE_SET_IMAGE

__all__ = ["images_by_tag", "pinned", "undetermined"]


def pinned(bundle: Bundle, update: Update, steps: Sequence[StepSpec]) -> Bundle:
    """Return a Bundle as an environment takes it: with `update.pinDigest` by the digests that are known of its tags.

    A digest that the Bundle names itself is never replaced.
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
    """Return the images that an environment with `update.pinDigest` takes and its Bundle has no digest for."""
    if not update.pin_digest:
        return []
    return [reference for _, reference in _taken_by_tag(bundle, update, steps)]


def undetermined(bundle: Bundle, update: Update, steps: Sequence[StepSpec]) -> str | None:
    """Return what an environment with `update.pinDigest` waits for, in words; None where every digest is known."""
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
    """Yield the images by their places that an environment takes, of those without a digest.

    Those that cannot be read are left to translation.
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

    There are none where it takes all, or that is not known yet.
    """
    names = [*update.images]
    for step in steps if names else ():
        chosen = (step.config or {}).get("images") if step.uses == KUSTOMIZE_SET_IMAGE.name else None
        if chosen is not None and (not isinstance(chosen, list) or any("${" in str(name) for name in chosen)):
            return frozenset()
        names += map(str, chosen or ())
    return frozenset(names)
