"""`helm-set-image`: set the images of a Bundle in the values file of a Helm chart."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kardinal.api.pipeline import HelmUpdate
from kardinal.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.steps.document_path import parse_path
from kardinal.steps.edit import Changes
from kardinal.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.steps.helm_values import Part, ValuePath, set_image_values
from kardinal.steps.images import selected_images
from kardinal.steps.yaml_update import ValueText, is_json, value_image_changes

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
    """The values file and where the images are in it."""

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
    update = context.step.spec.update
    helm = update.helm or HelmUpdate()
    files = EnvironmentFiles.of(context)
    file = config.file or helm.file
    path = files.full(file)
    content = files.read(file)
    with named(path):
        places = [
            ValuePath(parse_path(value.path), value.value, value.image or "") for value in config.values or helm.values
        ]
        images, verified = selected_images(context.bundle, update.images), update.verify_effect != "off"
        return {path: set_image_values(content, images, places, json=is_json(path), verified=verified)}


HELM_SET_IMAGE = StepDeclaration(
    name="helm-set-image",
    about="Sets the images of the Bundle in the values file of a Helm chart; nothing else in the file changes.",
    role=Role.EDIT,
    config=HelmSetImageConfig,
    edit=FileEdit(plan=_plan, image_changes=value_image_changes),
)
