"""`replace`: set the version that follows an image's repository, or another literal, in any text file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from kardinal.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.steps.edit import Changes, EditError
from kardinal.steps.effect import NoEffect
from kardinal.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.steps.images import ImageChange, PromotedImage, selected_images
from kardinal.steps.literals import mentions, references_in, replace_versions

__all__ = ["REPLACE", "ReplaceConfig"]


class ReplaceConfig(StepConfig):
    """The files, and what stands before the version in them."""

    files: Annotated[
        tuple[EnvironmentPath, ...],
        Field(max_length=64, description="The files; by default `update.replace.files`. Each must hold an image."),
    ] = ()
    literal: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=512,
            description="What stands before `:tag` or `@digest`; by default `update.replace.literal`, else the "
            "repository of the image.",
        ),
    ] = None


def _plan(context: EditContext, config: ReplaceConfig) -> Changes:
    update = context.step.spec.update.replace
    names = config.files or (update.files if update else ())
    literal = config.literal or (update.literal if update else None)
    if not names:
        raise EditError(context.step.spec.path, "no files to replace in", remedy="List them in update.replace.files")
    files = EnvironmentFiles.of(context)
    images = selected_images(context.bundle, context.step.spec.update.images)
    contents = {name: files.read(name) for name in names}
    changes = {}
    for name, content in contents.items():
        with named(files.full(name)):
            changes[files.full(name)] = replace_versions(content, images, literal=literal)
    if literal is None:
        _check_each_occurs(images, contents, files)
    return changes


def _check_each_occurs(images: Sequence[PromotedImage], contents: dict[str, bytes], files: EnvironmentFiles) -> None:
    for image in images:
        if not any(mentions(content, image.reference) for content in contents.values()):
            names = ", ".join(map(files.full, contents))
            raise NoEffect(names, f"{image.reference.repository} is in none of them with a version")


def _image_changes(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    """Return the references that differ. An edit adds and removes none, so both files have as many."""
    pairs = zip(references_in(before or b""), references_in(after or b""), strict=False)
    changes = [ImageChange(new.repository, old, new) for old, new in pairs if old != new]
    return list(dict.fromkeys(changes))


REPLACE = StepDeclaration(
    name="replace",
    about="Sets the version that follows the repository of an image, or another literal, in any text files.",
    role=Role.EDIT,
    config=ReplaceConfig,
    edit=FileEdit(plan=_plan, image_changes=_image_changes),
)
