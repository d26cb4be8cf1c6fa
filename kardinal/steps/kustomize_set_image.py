"""`kustomize-set-image`: set the images of a Bundle in the kustomization of an overlay.

The environment's directory is the limit: files below it are read, and a link that leaves it is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from kardinal.api import PromotionStep
from kardinal.api.base import RelativePath
from kardinal.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.steps.edit import EDITED_LIMIT, Changes, EditError, Tree, too_large
from kardinal.steps.images import PromotedImage, images_of
from kardinal.steps.kustomization import FILE_NAMES, KustomizationError, image_changes, set_images

__all__ = ["KUSTOMIZE_SET_IMAGE", "KustomizeSetImageConfig"]


class KustomizeSetImageConfig(StepConfig):
    """`path`: the overlay, relative to the environment's directory; without it the environment's directory itself."""

    path: RelativePath | None = None

    @field_validator("path")
    @classmethod
    def _inside_the_environment(cls, path: str | None) -> str | None:
        if path is not None and (path.startswith("/") or ".." in path.split("/")):
            raise PydanticCustomError("outside", "must be a relative path without .. segments")
        return path


def _plan(context: EditContext, config: KustomizeSetImageConfig) -> Changes:
    path = context.step.spec.path
    return _set_images(context.tree.within(path), config.path or "", images_of(context.bundle), inside=path)


def _check(tree: Tree, step: PromotionStep, config: KustomizeSetImageConfig) -> None:
    _find(tree.within(step.spec.path), config.path or "", inside=step.spec.path)


def _find(environment: Tree, overlay: str, *, inside: str) -> tuple[Tree, str, str]:
    """Return the directory of an overlay, its path, and the name of its kustomization."""
    path = "/".join(part.rstrip("/") for part in (inside, overlay) if part)
    directory = environment.within(overlay) if overlay else environment
    found = [(name, size) for name in FILE_NAMES if (size := directory.size(name)) is not None]
    if not found:
        raise EditError(path, f"holds no kustomization: none of {', '.join(FILE_NAMES)}")
    if len(found) > 1:
        raise EditError(path, f"holds {' and '.join(name for name, _ in found)}", remedy="Keep one of them")
    name, size = found[0]
    if size > EDITED_LIMIT:
        raise too_large(f"{path}/{name}", size, EDITED_LIMIT, used="edited")
    return directory, path, name


def _set_images(environment: Tree, overlay: str, images: Sequence[PromotedImage], *, inside: str) -> dict[str, bytes]:
    directory, path, name = _find(environment, overlay, inside=inside)
    content = directory.read(name) or b""
    try:
        return {f"{path}/{name}": set_images(content, images)}
    except KustomizationError as error:
        raise EditError(f"{path}/{name}", str(error)) from error


KUSTOMIZE_SET_IMAGE = StepDeclaration(
    name="kustomize-set-image",
    about="Sets the images of the Bundle in a kustomization, as `kustomize edit set image` would.",
    role=Role.EDIT,
    config=KustomizeSetImageConfig,
    edit=FileEdit(plan=_plan, image_changes=image_changes, check=_check),
)
