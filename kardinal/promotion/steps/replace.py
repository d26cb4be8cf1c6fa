"""`replace`: set the version after the repository of an image, or after another literal, in any text file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kardinal.edits.images import ImageChange, PromotedImage
from kardinal.edits.literals import literal_doubt, mentions, references_in, replace_versions
from kardinal.promotion.api import Bundle
from kardinal.promotion.steps.branch_layout import with_artifacts
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.effect import Effect, EffectFinding
from kardinal.promotion.steps.environment_files import EnvironmentFiles, EnvironmentPath, named
from kardinal.promotion.steps.images import selected_images
from kardinal.tree.edit import Changes, EditError

__all__ = ["REPLACE", "ReplaceConfig"]


class ReplaceConfig(StepConfig):
    """The files, and the text before the version in them."""

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


@dataclass(frozen=True, slots=True)
class _Asked:
    """The files of the environment with the text before the version in them."""

    contents: Mapping[str, bytes]
    """The files by their paths from the root of the repository."""
    literal: str | None

    @classmethod
    def of(cls, context: EditContext, config: ReplaceConfig, files: EnvironmentFiles) -> _Asked:
        update = context.step.spec.update.replace
        names = config.files or (update.files if update else ())
        if not names:
            raise EditError(
                context.step.spec.path, "no files to replace in", remedy="List them in update.replace.files"
            )
        literal = config.literal or (update.literal if update else None)
        return cls({files.full(name): files.read(name) for name in names}, literal)


def _plan(context: EditContext, config: ReplaceConfig) -> Changes:
    asked = _Asked.of(context, config, EnvironmentFiles.of(context))
    images = _images(context, context.bundle)
    changes = {}
    for path, content in asked.contents.items():
        with named(path):
            changes[path] = replace_versions(content, images, literal=asked.literal)
    return changes


def _verify(context: EditContext, config: ReplaceConfig) -> Effect:
    if context.step.spec.update.verify_effect == "off":
        return Effect()
    asked = _Asked.of(context, config, EnvironmentFiles.before(context))
    return Effect(findings=[*_files_without(context, asked), *_images_without(context, asked)])


def _files_without(context: EditContext, asked: _Asked) -> Iterator[EffectFinding]:
    """Yield a finding for each file that contains none of the environment's images."""
    images = (
        _images(context, with_artifacts(context.bundle, context.state)) if context.bundle.spec.artifacts.images else ()
    )
    for path, content in asked.contents.items():
        with named(path):
            doubt = literal_doubt(content, images, literal=asked.literal)
        if doubt is not None:
            yield EffectFinding(path=path, certain=True, message=doubt)


def _images_without(context: EditContext, asked: _Asked) -> Iterator[EffectFinding]:
    """Yield a finding for each image that no file contains, if there are several images."""
    images = _images(context, context.bundle)
    for image in images if asked.literal is None and len(images) > 1 else ():
        if not any(mentions(content, image.reference) for content in asked.contents.values()):
            message = f"{image.reference.repository} is in none of them with a version"
            yield EffectFinding(path=", ".join(asked.contents), certain=True, message=message)


def _images(context: EditContext, bundle: Bundle) -> Sequence[PromotedImage]:
    return selected_images(bundle, context.step.spec.update.images)


def _image_changes(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    """Return the references that differ. An edit adds and removes none, so both files have the same number of them."""
    pairs = zip(references_in(before or b""), references_in(after or b""), strict=False)
    changes = [ImageChange(new.repository, old, new) for old, new in pairs if old != new]
    return list(dict.fromkeys(changes))


REPLACE = StepDeclaration(
    name="replace",
    about="Sets the version that follows the repository of an image, or another literal, in any text files.",
    role=Role.EDIT,
    config=ReplaceConfig,
    edit=FileEdit(plan=_plan, image_changes=_image_changes, verify=_verify),
    takes=frozenset(["images"]),
    writes_digests=True,
)
