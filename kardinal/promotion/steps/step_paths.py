"""Paths in the config of a step, and the kustomization at a path."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from kardinal.edits.kustomize.kustomization import FILE_NAMES
from kardinal.tree.edit import EditError, Tree

__all__ = ["below", "find_kustomization", "inside"]


def inside(path: str) -> str:
    """Refuse a path that is absolute, that leaves its directory, or that a program could read as a list of paths."""
    if path.startswith("/") or ".." in path.split("/") or "," in path:
        raise PydanticCustomError("outside", "must be a relative path without .. segments and commas")
    return path


def below(directory: str, path: str | None) -> str:
    """Return `path`, which is relative to `directory`, as a path of the repository; without `path` the directory."""
    parts = [*directory.split("/"), *(path or "").split("/")]
    return "/".join(part for part in parts if part not in ("", "."))


def find_kustomization(tree: Tree, environment: str, overlay: str | None) -> tuple[str, int]:
    """Return the name and size of the kustomization of an environment's overlay. Raises `EditError`."""
    path = below(environment, overlay)
    # Two calls instead of one, so that the error names the directory that is missing.
    directory = tree.within(environment)
    directory = directory.within(overlay) if overlay else directory
    found = [(name, size) for name in FILE_NAMES if (size := directory.size(name)) is not None]
    if not found:
        raise EditError(path, f"holds no kustomization: none of {', '.join(FILE_NAMES)}")
    if len(found) > 1:
        raise EditError(path, f"holds {' and '.join(name for name, _ in found)}", remedy="Keep one of them")
    return found[0]
