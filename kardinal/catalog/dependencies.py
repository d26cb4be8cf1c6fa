"""The repositories that components name in `kapitan.dependencies`, fetched before anything is rendered.

parameters:
  kapitan:
    dependencies:
      - {type: git, source: "https://git.example.com/acme/charts.git", ref: v2, subdir: nginx,
         output_path: "${_base_directory}/charts/nginx"}
"""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.fetching import Fetcher
from kardinal.catalog.values import Merged

__all__ = ["GitDependency", "fetch_dependency", "read_dependencies"]

_ALLOWED = ("dependencies", "vendor")
"""The directories below which a dependency may be shown."""


@dataclass(frozen=True, slots=True)
class GitDependency:
    """A directory of a repository that is shown at `output_path`."""

    instance: str
    output_path: str
    url: str
    version: str
    directory: str
    where: Where

    @property
    def source(self) -> tuple[str, str, str]:
        """Return all that tells one dependency from another at the same path."""
        return self.url, self.version, self.directory


def read_dependencies(instance: str, merged: Merged) -> Iterator[GitDependency]:
    """Yield the dependencies of an instance. Raises `CatalogError`."""
    kapitan = merged.parameters.get("kapitan")
    entries = kapitan.get("dependencies") if isinstance(kapitan, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        where = Where(instance=instance, parameter=f"kapitan.dependencies[{index}]")
        if not isinstance(entry, dict):
            raise CatalogError("invalid", "has to be a mapping", where=where)
        kind = entry.get("type")
        if kind != "git":
            raise CatalogError(
                "refused",
                f"dependencies of type {str(kind)[:40]} are not fetched",
                where=where,
                remedy="Use type git, or put the files into the repository of the component",
            )
        url = _text(entry, "source", where)
        if not url:
            raise CatalogError("invalid", "needs a source", where=where)
        yield GitDependency(
            instance=instance,
            output_path=_output_path(_text(entry, "output_path", where), where),
            url=url,
            version=_text(entry, "ref", where),
            directory=_text(entry, "subdir", where).strip("/"),
            where=where,
        )


async def fetch_dependency(fetcher: Fetcher, wanted: GitDependency) -> Path:
    """Fetch a dependency, and return its directory. Raises `CatalogError`."""
    tree = await fetcher.fetch("dependency", wanted.output_path, wanted.url, wanted.version, where=wanted.where)
    parts = wanted.directory.split("/")
    directory = tree.directory / wanted.directory
    if ".." in parts or not await asyncio.to_thread(directory.is_dir):
        where = Where(repository=tree.title, instance=wanted.instance, parameter=wanted.where.parameter)
        raise CatalogError("invalid", f"there is no directory {wanted.directory}", where=where)
    return directory


def _output_path(path: str, where: Where) -> str:
    shortest = posixpath.normpath(path) if path else ""
    if shortest.partition("/")[0] not in _ALLOWED or "/" not in shortest:
        raise CatalogError(
            "refused",
            f"the output_path {path[:200]!r} is no place for a dependency",
            where=where,
            remedy="Begin it with ${_base_directory}/",
        )
    return shortest


def _text(entry: dict[str, Any], field: str, where: Where) -> str:
    value = entry.get(field)
    if value is not None and not isinstance(value, str):
        raise CatalogError("invalid", f"{field} has to be a string: put it in quotes", where=where)
    return value or ""
