"""`copy` and `delete`: copy or delete whole files within the directory of an environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from kardinal.edits.images import ImageChange
from kardinal.promotion.steps.declaration import EditContext, FileEdit, Role, StepConfig, StepDeclaration
from kardinal.promotion.steps.environment_files import EnvironmentFiles, EnvironmentPath
from kardinal.promotion.steps.inputs import InputConfig, input_tree
from kardinal.tree.edit import Changes, EditError, Tree
from kardinal.tree.file_patterns import FILES_LIMIT, files_of, fixed_part, is_pattern

__all__ = ["COPY", "DELETE", "CopyConfig", "DeleteConfig"]


class CopyConfig(InputConfig):
    """The files and their destination."""

    from_: Annotated[
        EnvironmentPath,
        Field(
            alias="from",
            description="A file, a directory, or a pattern: `*` and `?` within a name, `**` for any directories.",
        ),
    ]
    to: Annotated[
        EnvironmentPath,
        Field(
            description="The file, or for a directory or a pattern the directory; a file goes into a directory if this "
            "ends with a slash."
        ),
    ]


class DeleteConfig(StepConfig):
    """The files to delete."""

    paths: Annotated[
        tuple[EnvironmentPath, ...],
        Field(
            min_length=1,
            max_length=64,
            description="Files, directories, or patterns: `*` and `?` within a name, `**` for any directories. What is "
            "not there is fine.",
        ),
    ]


def _copied(context: EditContext, config: CopyConfig) -> Changes:
    files = EnvironmentFiles.of(context)
    source, shown = _source(context, files, config)
    found = files_of(source, config.from_)
    if not found:
        raise EditError(shown, "no such file or directory")
    changes: dict[str, bytes | None] = {}
    for path in found:
        target = files.full(_target(path, config))
        content = source.read(path)
        if content is not None:
            changes[target] = content
    return changes


def _source(context: EditContext, files: EnvironmentFiles, config: CopyConfig) -> tuple[Tree, str]:
    if config.input is None:
        return files.tree, files.full(config.from_)
    return input_tree(context, config.input), f"{config.input}:/{config.from_}"


def _target(path: str, config: CopyConfig) -> str:
    """Return the target of a file, relative to the environment's directory."""
    start = fixed_part(config.from_)
    if not is_pattern(config.from_) and path == start:
        return f"{config.to}{path.rpartition('/')[2]}" if config.to.endswith("/") else config.to
    return f"{config.to}/{path[len(start) :].lstrip('/')}"


def _deleted(context: EditContext, config: DeleteConfig) -> Changes:
    files = EnvironmentFiles.of(context)
    found = dict.fromkeys(path for pattern in config.paths for path in files_of(files.tree, pattern))
    if len(found) > FILES_LIMIT:
        raise EditError(files.directory, f"more than {FILES_LIMIT:,} files to delete", remedy="Delete fewer at once")
    return {files.full(path): None for path in found}


def _no_images(before: bytes | None, after: bytes | None) -> Sequence[ImageChange]:
    return ()


COPY = StepDeclaration(
    name="copy",
    about="Copies files within the environment's directory, or into it from another repository.",
    role=Role.EDIT,
    config=CopyConfig,
    edit=FileEdit(plan=_copied, image_changes=_no_images),
)

DELETE = StepDeclaration(
    name="delete",
    about="Deletes files below the environment's directory.",
    role=Role.EDIT,
    config=DeleteConfig,
    edit=FileEdit(plan=_deleted, image_changes=_no_images),
)
