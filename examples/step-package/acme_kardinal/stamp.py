"""`acme-stamp`: write the promoted version into a file, without I/O: the change is a function of what is there."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.edits.images import ImageChange
from kardinal.models.base import RelativePath
from kardinal.promotion.api.image import bundle_version
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.tree.edit import Changes

__all__ = ["STAMP"]


class StampConfig(StepConfig):
    """`file`: below the environment's directory. `note`: a second line."""

    file: RelativePath = "VERSION"
    note: str = ""


def _plan(context: EditContext, config: StampConfig) -> Changes:
    lines = [bundle_version(context.bundle.spec.artifacts), *([config.note] if config.note else [])]
    path = f"{context.step.spec.path}/{config.file}"
    content = "".join(f"{line}\n" for line in lines).encode()
    return {} if context.tree.read(path) == content else {path: content}


def _no_images(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    return ()


STAMP = StepDeclaration(
    name="acme-stamp",
    about="Writes the promoted version into a file.",
    role=Role.EDIT,
    config=StampConfig,
    edit=FileEdit(plan=_plan, image_changes=_no_images),
)
