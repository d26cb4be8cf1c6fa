"""Paths in the config of a step, and what is found there."""

from __future__ import annotations

from pydantic_core import PydanticCustomError

from kardinal.steps.edit import EditError, Tree
from kardinal.steps.kustomization import FILE_NAMES

__all__ = ["below", "find_kustomization", "inside"]


def inside(path: str) -> str:
    """Refuse a path that is absolute or leaves its directory, or that a program could take for a list of paths."""
    if path.startswith("/") or ".." in path.split("/") or "," in path:
        raise PydanticCustomError("outside", "must be a relative path without .. segments and commas")
    return path


def below(directory: str, path: str | None) -> str:
    """Return `path` of a directory as a path of the repository; the directory itself without one."""
    parts = [*directory.split("/"), *(path or "").split("/")]
    return "/".join(part for part in parts if part not in ("", "."))


def find_kustomization(tree: Tree, environment: str, overlay: str | None) -> tuple[str, int]:
    """Return the name and size of the kustomization of an overlay of an environment. Raises `EditError`."""
    path = below(environment, overlay)
    # One after the other, so that the error names the directory that is missing.
    directory = tree.within(environment)
    directory = directory.within(overlay) if overlay else directory
    found = [(name, size) for name in FILE_NAMES if (size := directory.size(name)) is not None]
    if not found:
        raise EditError(path, f"holds no kustomization: none of {', '.join(FILE_NAMES)}")
    if len(found) > 1:
        raise EditError(path, f"holds {' and '.join(name for name, _ in found)}", remedy="Keep one of them")
    return found[0]
