"""`helm-set-image`: set the images of a Bundle in the values file of a Helm chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from kardinal.edits.helm.helm_values import Part, ValuePath, digest_doubt, set_image_values, value_doubts
from kardinal.edits.images import PromotedImage
from kardinal.edits.yaml.document_path import parse_path
from kardinal.promotion.api.pipeline import HelmUpdate
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.effect import Effect, EffectFinding
from kardinal.promotion.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.promotion.steps.images import selected_images
from kardinal.promotion.steps.yaml_update import ValueText, is_json, value_image_changes
from kardinal.tree.edit import Changes, EditError

__all__ = ["HELM_SET_IMAGE", "HelmSetImageConfig"]


class HelmImageValue(StepConfig):
    """One value that holds an image or a part of one."""

    path: Annotated[ValueText, Field(description="The path of the value.")]
    value: Annotated[
        Part,
        Field(
            description="What is written there: the `tag`, the `digest`, the whole `reference`, or the `repository`."
        ),
    ] = "tag"
    image: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=253,
            description="The image, by its name in the Bundle or its repository; needed if neither the Bundle has one "
            "image only nor a repository stands beside the value.",
        ),
    ] = None


class HelmSetImageConfig(StepConfig):
    """The values file and the paths of the images in it."""

    file: Annotated[
        EnvironmentPath | None,
        Field(description="The values file; by default `update.helm.file`, else `values.yaml`."),
    ] = None
    values: Annotated[
        tuple[HelmImageValue, ...],
        Field(
            max_length=64,
            description="The values; by default `update.helm.values`, else `image` as most charts have it: a "
            "reference, or `image.tag` and, where it exists, `image.digest` beside the repository of the image.",
        ),
    ] = ()


def _plan(context: EditContext, config: HelmSetImageConfig) -> Changes:
    file, places = _asked(context, config)
    files = EnvironmentFiles.of(context)
    path = files.full(file)
    with named(path):
        return {path: set_image_values(files.read(file), _images(context), places, json=is_json(path))}


def _verify(context: EditContext, config: HelmSetImageConfig) -> Effect:
    update = context.step.spec.update
    if update.verify_effect == "off" and not update.pin_digest:
        return Effect()
    file, places = _asked(context, config)
    files = EnvironmentFiles.before(context)
    path = files.full(file)
    with named(path):
        content = files.read(file)
        images = _images(context)
        json = is_json(path)
        doubts = value_doubts(content, images, places, json=json)
        if update.pin_digest and update.verify_effect != "fail":
            # With pinDigest a tag alone is never written, even if `verifyEffect` allows edits without an effect.
            lost = digest_doubt(content, images, places, json=json)
            if lost is not None:
                raise EditError(path, lost)
    return Effect(findings=[EffectFinding(path=path, certain=True, message=doubt) for doubt in doubts])


def _asked(context: EditContext, config: HelmSetImageConfig) -> tuple[str, list[ValuePath]]:
    """Return the values file and the paths in it."""
    helm = context.step.spec.update.helm or HelmUpdate()
    values = config.values or helm.values
    return config.file or helm.file, [
        ValuePath(parse_path(value.path), value.value, value.image or "") for value in values
    ]


def _images(context: EditContext) -> Sequence[PromotedImage]:
    return selected_images(context.bundle, context.step.spec.update.images)


HELM_SET_IMAGE = StepDeclaration(
    name="helm-set-image",
    about="Sets the images of the Bundle in the values file of a Helm chart; nothing else in the file changes.",
    role=Role.EDIT,
    config=HelmSetImageConfig,
    edit=FileEdit(plan=_plan, image_changes=value_image_changes, verify=_verify),
    takes=frozenset(["images"]),
    writes_digests=True,
)
