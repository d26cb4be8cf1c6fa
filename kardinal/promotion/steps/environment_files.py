"""The files of an environment, as a step names them in its config: only below the environment's directory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest
from kardinal.promotion.steps.declaration import EditContext
from kardinal.tree.edit import EDITED_LIMIT, EditError, Tree, split_path, too_large

__all__ = ["EnvironmentFiles", "EnvironmentPath", "named"]


def _below_the_environment(path: str) -> str:
    try:
        inside = split_path(path)
    except EditError:
        inside = []
    if not inside or "," in path:
        raise PydanticCustomError("outside", "must be a relative path without .. or .git segments and without commas")
    return path


EnvironmentPath = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(_below_the_environment)]
"""A path relative to the environment's directory."""


@dataclass(frozen=True, slots=True)
class EnvironmentFiles:
    """The directory of an environment in the repository."""

    tree: Tree
    """The files below `directory`."""
    directory: str

    @classmethod
    def of(cls, context: EditContext) -> EnvironmentFiles:
        return cls._below(context.tree, context.step.spec.path)

    @classmethod
    def before(cls, context: EditContext) -> EnvironmentFiles:
        """Return the files before the edit, for its `verify`."""
        return cls._below(context.tree if context.before is None else context.before, context.step.spec.path)

    @classmethod
    def _below(cls, tree: Tree, path: str) -> EnvironmentFiles:
        return cls(tree.within(path), "/".join(split_path(path)))

    def full(self, path: str) -> str:
        """Return the path from the root of the repository."""
        return "/".join([*split_path(self.directory), *split_path(path)])

    def read(self, path: str) -> bytes:
        """Return the content of a file to edit. If it does not exist, raises `EditError` with the nearest name."""
        size = self.tree.size(path)
        if size is not None and size > EDITED_LIMIT:
            raise too_large(self.full(path), size, EDITED_LIMIT, used="edited")
        content = self.tree.read(path)
        if content is None:
            raise EditError(self.full(path), self._missing(path))
        return content

    def _missing(self, path: str) -> str:
        if self.tree.is_dir(path):
            return "is a directory; name a file in it"
        directory, _, name = "/".join(split_path(path)).rpartition("/")
        near = nearest(name, self.tree.entries(directory), cutoff=0.5)
        return "no such file" + (f"; did you mean {near}?" if near else "")


@contextmanager
def named(path: str) -> Iterator[None]:
    """Raise an error about the content of a file as an `EditError` that names the file."""
    try:
        yield
    except EditError:
        raise
    except KardinalError as error:
        raise EditError(path, error.message, remedy=error.remedy) from error
