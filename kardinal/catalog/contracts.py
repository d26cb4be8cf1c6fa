"""The needs of a compilation: trees of repositories, and a process that merges and renders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kardinal.catalog.values import InstanceFiles, Layout, Merged, Node, RenderJob

__all__ = ["CatalogSources", "Engine", "Resolved", "SourceTree"]


@dataclass(frozen=True, slots=True)
class Resolved:
    """A commit. `branch`: the default branch, if no version was asked for; otherwise empty."""

    commit: str
    branch: str = ""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A tree on this machine: `id` is its object id in Git, `directory` holds its files, which are never changed."""

    id: str
    directory: Path


class CatalogSources(Protocol):
    """The repositories that a compilation may read. Each call raises `CatalogError` of kind `fetch` or `refused`."""

    async def resolve(self, url: str, version: str) -> Resolved:
        """Return the commit of a branch, tag or commit id; of the default branch if `version` is empty.

        A commit that is on no branch or tag of the repository is refused.
        """
        ...

    async def tree(self, url: str, commit: str, path: str) -> SourceTree:
        """Return the tree of a commit below `path`; the empty path is its root."""
        ...

    async def download(self, url: str, digest: str) -> tuple[str, Path]:
        """Return digest (`sha256:…`) and place of a file from `https://` or `oci://`.

        `digest`: what the lock has for it, and then the file must have it; empty accepts what is there.
        """
        ...


class Engine(Protocol):
    """Merges and renders in another process, which sees nothing but the layout.

    Each call raises `CatalogError`: `invalid` for the hierarchy, `render` for templates, `limit` for their cost.
    """

    async def merge(self, layout: Layout, nodes: Mapping[str, Node], *, tolerate_missing: bool) -> Mapping[str, Merged]:
        """Return the merge of each node. `tolerate_missing`: classes that do not exist count as empty."""
        ...

    async def evaluate(self, layout: Layout, file: str, variables: Mapping[str, str]) -> object:
        """Return the value of a Jsonnet file of the layout; `variables` are its external variables."""
        ...

    async def render(
        self, layout: Layout, jobs: Sequence[RenderJob], inventory: Mapping[str, Merged]
    ) -> Sequence[InstanceFiles]:
        """Return the files of each instance, in the order of `jobs`.

        `inventory` has the nodes of all instances, and the bootstrap node.
        """
        ...

    async def origin(self, layout: Layout, node: Node, path: str) -> Sequence[tuple[str, object]]:
        """Return the classes that set the parameter at `path` (`nginx.replicas`) of a node, in the order of the merge.

        Each with the value that it has there.
        """
        ...
