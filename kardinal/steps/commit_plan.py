"""What a promotion writes to Git, as pure values of its order and Bundle.

The edit is a function of whatever tree it meets, so that it can be planned, landed, and landed again on a branch that
has moved. Nothing of it is kept between attempts: the same order gives the same edit and the same message.

The trailers are how a promotion recognises its own commit after a crash. Names alone would not do: a Bundle that was
deleted and made again under its name would take the commits of the first for its own, so the Bundle's uid is among
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kardinal.api import Bundle, PromotionStep, names
from kardinal.api.image import ImageReferenceError, bundle_version, promoted_images
from kardinal.api.pipeline import StepSpec
from kardinal.steps.commit_message import CommitMessage
from kardinal.steps.edit import Edit, EditError, Tree
from kardinal.steps.kustomization import FILE_NAMES, KustomizationError, PromotedImage, set_images
from kardinal.steps.sequence import KustomizeSetImageConfig

__all__ = ["commit_message", "edit_of", "images_of", "trailers_of"]


def images_of(bundle: Bundle) -> tuple[PromotedImage, ...]:
    """The artifacts of a Bundle as its manifests will name them."""
    artifacts = bundle.spec.artifacts
    try:
        references = promoted_images(artifacts)
    except ImageReferenceError as error:
        raise ImageReferenceError(f"Bundle {bundle.metadata.name}: {error}") from error
    return tuple(
        PromotedImage(image.name, reference) for image, reference in zip(artifacts.images, references, strict=True)
    )


def trailers_of(step: PromotionStep, bundle: Bundle) -> dict[str, str]:
    """What marks a commit as the one of this promotion."""
    return {
        names.TRAILER_BUNDLE: bundle.metadata.name,
        names.TRAILER_ENVIRONMENT: step.spec.environment,
        names.TRAILER_STEP: f"{step.metadata.namespace}/{step.metadata.name}",
        names.TRAILER_UID: bundle.metadata.uid,
    }


def commit_message(step: PromotionStep, bundle: Bundle) -> CommitMessage:
    version = bundle_version(bundle.spec.artifacts)
    words = ("Promote", step.spec.pipeline, version, "to", step.spec.environment)
    return CommitMessage(
        subject=" ".join(word for word in words if word),
        body="\n".join(str(image.reference) for image in images_of(bundle)),
        trailers=trailers_of(step, bundle),
    )


def edit_of(step: PromotionStep, bundle: Bundle, steps: Iterable[StepSpec]) -> Edit:
    """All edits of `steps` as one."""
    images = images_of(bundle)
    overlays = [
        KustomizeSetImageConfig.model_validate(spec.config or {}).path or ""
        for spec in steps
        if spec.uses == "kustomize-set-image"
    ]

    def edit(tree: Tree) -> Mapping[str, bytes]:
        # The environment's directory is the fence: what lies below it is read, and a link that leaves it is not.
        environment = tree.within(step.spec.path)
        return dict(_set_images(environment, overlay, images, inside=step.spec.path) for overlay in overlays)

    return edit


def _set_images(environment: Tree, overlay: str, images: Sequence[PromotedImage], *, inside: str) -> tuple[str, bytes]:
    path = "/".join(part.rstrip("/") for part in (inside, overlay) if part)
    directory = environment.within(overlay) if overlay else environment
    found = [(name, content) for name in FILE_NAMES if (content := directory.read(name)) is not None]
    if not found:
        raise EditError(path, f"holds no kustomization: none of {', '.join(FILE_NAMES)}")
    if len(found) > 1:
        raise EditError(path, f"holds {' and '.join(name for name, _ in found)}", remedy="Keep one of them")
    name, content = found[0]
    try:
        return f"{path}/{name}", set_images(content, images)
    except KustomizationError as error:
        raise EditError(f"{path}/{name}", str(error)) from error
