"""`kustomize-set-image`: set the images of a Bundle in the kustomization of an overlay.

Only files below the environment's directory are read; a link that leaves it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import AfterValidator, Field

from kardinal.edits.images import PromotedImage
from kardinal.edits.kustomize.kustomization import KustomizationError, image_changes, mirror_of, set_images
from kardinal.edits.kustomize.reading import read_kustomization
from kardinal.models.base import RelativePath
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.effect import Effect, kustomize_findings
from kardinal.promotion.steps.images import selected_images
from kardinal.promotion.steps.step_paths import below, find_kustomization, inside
from kardinal.tree.edit import EDITED_LIMIT, Changes, EditError, Tree, too_large

__all__ = ["KUSTOMIZE_SET_IMAGE", "KustomizeSetImageConfig"]


class KustomizeSetImageConfig(StepConfig):
    """The overlay, and the images to set in it."""

    path: Annotated[
        Annotated[RelativePath, AfterValidator(inside)] | None,
        Field(description="The directory of the kustomization; by default the environment's own."),
    ] = None
    images: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=253)], ...],
        Field(
            max_length=64,
            description="Names or repositories of the Bundle's images; by default `update.images`, else all.",
        ),
    ] = ()


def _plan(context: EditContext, config: KustomizeSetImageConfig) -> Changes:
    path = below(context.step.spec.path, config.path)
    name, content = _kustomization(context, config, path)
    reading = read_kustomization(context.tree, path)
    try:
        changed = set_images(content, _images(context, config), used=[image.before for image in reading.images])
    except KustomizationError as error:
        raise EditError(f"{path}/{name}", str(error)) from error
    return {f"{path}/{name}": changed}


def _check(tree: Tree, step: PromotionStep, config: KustomizeSetImageConfig) -> None:
    find_kustomization(tree, step.spec.path, config.path)


def _verify(context: EditContext, config: KustomizeSetImageConfig) -> Effect:
    path = below(context.step.spec.path, config.path)
    _, content = _kustomization(context, config, path)
    images = _images(context, config)
    mirrors = {image.reference.repository: mirror for image in images if (mirror := mirror_of(content, image))}
    if context.step.spec.update.verify_effect == "off":
        return Effect(mirrors=mirrors)
    wanted = [(image, _rendered_as(image, mirrors)) for image in images]
    return Effect(findings=kustomize_findings(context.tree, path, wanted, context.renderer), mirrors=mirrors)


def _rendered_as(image: PromotedImage, mirrors: Mapping[str, str]) -> ImageReference:
    return replace(image.reference, repository=mirrors.get(image.reference.repository, image.reference.repository))


def _images(context: EditContext, config: KustomizeSetImageConfig) -> tuple[PromotedImage, ...]:
    return selected_images(context.bundle, config.images or context.step.spec.update.images)


def _kustomization(context: EditContext, config: KustomizeSetImageConfig, path: str) -> tuple[str, bytes]:
    """Return the name and content of the kustomization of an overlay."""
    name, size = find_kustomization(context.tree, context.step.spec.path, config.path)
    if size > EDITED_LIMIT:
        raise too_large(f"{path}/{name}", size, EDITED_LIMIT, used="edited")
    return name, context.tree.read(f"{path}/{name}") or b""


KUSTOMIZE_SET_IMAGE = StepDeclaration(
    name="kustomize-set-image",
    about="Sets the images of the Bundle in a kustomization, as `kustomize edit set image` would.",
    role=Role.EDIT,
    config=KustomizeSetImageConfig,
    edit=FileEdit(plan=_plan, image_changes=image_changes, verify=_verify, check=_check),
    outputs={"mirrors": "mirrors"},
    takes=frozenset(["images"]),
    writes_digests=True,
)
