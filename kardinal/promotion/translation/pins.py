"""Digests for environments with `update.pinDigest`, of a Bundle and of a rollback (pure).

A Bundle that names a tag, such as `ghcr.io/acme/app:1.2.3`, gets the digest that the tag had when the Bundle started. A
rollback gets the digest that was recorded for the Bundle that it restores, because the tag may name another image by
now. An image without a recorded digest is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import ResolvedImage
from kardinal.promotion.api.pipeline import Environment
from kardinal.promotion.api.resolved import resolved_image
from kardinal.promotion.steps.pins import images_by_tag
from kardinal.promotion.translation.errors import InvalidSpec, Problem
from kardinal.promotion.translation.rollback import verified_at

__all__ = ["check_pins", "recorded_digests", "restored_pin_problems"]

_FIELD = "spec.artifacts.images"
_REMEDY = "create a Bundle that names the digest"


def check_pins(bundle: Bundle, environments: Iterable[Environment]) -> None:
    """Raise `InvalidSpec` for tags that an environment writes by digest although no registry was asked for it.

    If a registry was asked but has not answered, there is no error: the environment waits for the answer.
    """
    asking: dict[ImageReference, list[str]] = {}
    for environment, image in _by_tag(bundle, environments):
        if resolved_image(image, bundle.status.artifacts) is None:
            asking.setdefault(image, []).append(environment.name)
    problems = []
    for image, names in asking.items():
        registry = image.canonical.partition("/")[0]
        message = (
            f"{image} is to be written by digest in {', '.join(names)} (update.pinDigest), and no registry was asked "
            "for it"
        )
        remedy = f"{_REMEDY}, or ask the operator for --allow-registries {registry}"
        problems.append(Problem(f"Bundle/{bundle.metadata.name}", _FIELD, "NoDigest", message, remedy))
    if problems:
        raise InvalidSpec(problems)


def recorded_digests(restored: Bundle, environments: Iterable[str]) -> tuple[ResolvedImage, ...]:
    """Return the digests with which a Bundle was Verified in each of `environments`.

    A digest that was recorded after the Bundle was Verified is left out, because the environment did not prove it.
    """
    moments = [verified_at(restored.status.environments.get(name)) for name in environments]
    known = [moment for moment in moments if moment is not None]
    if len(known) < len(moments) or not known:
        return ()
    return tuple(
        each.model_copy(update={"moved_to": None, "message": None})
        for each in restored.status.artifacts or ()
        if each.digest is not None and each.resolved_at <= min(known)
    )


def restored_pin_problems(bundle: Bundle, restored: Bundle, environments: Iterable[Environment]) -> Iterator[Problem]:
    """Yield the images that a rollback cannot restore by digest. `environments` are all of its Pipeline."""
    rollback = bundle.spec.intent.rollback
    if rollback is None:
        return
    subject = f"Bundle/{bundle.metadata.name}"
    name = restored.metadata.name
    recorded = recorded_digests(restored, rollback.environments)
    for environment, image in _by_tag(bundle, (each for each in environments if each.name in rollback.environments)):
        then, own = (resolved_image(image, known) for known in (recorded, bundle.status.artifacts))
        if then is None:
            message = (
                f"{image} is to be written by digest in {environment.name} (update.pinDigest), and none is recorded "
                f"from before Bundle {name} was Verified there: today its tag may be another image"
            )
            yield Problem(subject, _FIELD, "NoDigest", message, _REMEDY)
        elif own is None or own.digest != then.digest:
            message = f"Bundle {name} was Verified with {image}@{then.digest}, and status.artifacts says otherwise"
            yield Problem(subject, "status.artifacts", "OtherDigest", message, "delete it and make the rollback anew")


def _by_tag(bundle: Bundle, environments: Iterable[Environment]) -> Iterator[tuple[Environment, ImageReference]]:
    for environment in environments:
        for image in images_by_tag(bundle, environment.update, environment.steps or ()):
            yield environment, image
