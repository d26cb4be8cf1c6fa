"""A tree with another one below a name of its root, for what reads files of both at once."""

from __future__ import annotations

from kardinal.steps.edit import Tree, split_path

__all__ = ["Mounted"]


class Mounted:
    """A `Tree`. Lists of its root do not have the name `at`, below which is `mounted`."""

    def __init__(self, tree: Tree, *, at: str, mounted: Tree) -> None:
        self._tree = tree
        self._at = at
        self._mounted = mounted

    def read(self, path: str) -> bytes | None:
        tree, inner = self._of(path)
        return tree.read(inner)

    def size(self, path: str) -> int | None:
        tree, inner = self._of(path)
        return tree.size(inner)

    def entries(self, directory: str) -> list[str]:
        tree, inner = self._of(directory)
        return tree.entries(inner)

    def is_dir(self, path: str) -> bool:
        tree, inner = self._of(path)
        return tree.is_dir(inner)

    def identify(self, path: str) -> str | None:
        tree, inner = self._of(path)
        return tree.identify(inner)

    def within(self, directory: str) -> Tree:
        tree, inner = self._of(directory)
        return tree.within(inner)

    def _of(self, path: str) -> tuple[Tree, str]:
        first, *rest = split_path(path) or [""]
        return (self._mounted, "/".join(rest)) if first == self._at else (self._tree, path)
