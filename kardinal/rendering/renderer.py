"""The contract of rendering: Kustomize and Helm turn a tree into manifests.

The programs themselves are run by `programs`, on a private copy of the files that they may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kardinal.tree.edit import EditError, Tree

__all__ = ["NO_RENDERER", "Renderer", "RenderingUnavailable"]


class RenderingUnavailable(EditError):
    """This machine lacks the program for the rendering."""


class Renderer(Protocol):
    """Renders manifests.

    Raises `EditError` for files that cannot be rendered, `RenderingUnavailable` without a program.
    """

    def kustomize(self, tree: Tree, path: str, *, helm: bool, remote: bool) -> bytes:
        """Return the manifests of the kustomization in the directory `path`."""
        ...

    def helm(
        self,
        tree: Tree,
        chart: str,
        *,
        release: str,
        namespace: str,
        values: Sequence[str],
        set_values: Mapping[str, str],
    ) -> bytes:
        """Return the manifests of the chart in the directory `chart`; `values` are paths of files in the tree."""
        ...


class _NoRenderer:
    def kustomize(self, tree: Tree, path: str, *, helm: bool, remote: bool) -> bytes:
        raise RenderingUnavailable(path, "cannot be rendered here: no renderer is set up")

    def helm(
        self,
        tree: Tree,
        chart: str,
        *,
        release: str,
        namespace: str,
        values: Sequence[str],
        set_values: Mapping[str, str],
    ) -> bytes:
        raise RenderingUnavailable(chart, "cannot be rendered here: no renderer is set up")


NO_RENDERER: Renderer = _NoRenderer()
"""A renderer without programs: every call raises `RenderingUnavailable`."""
