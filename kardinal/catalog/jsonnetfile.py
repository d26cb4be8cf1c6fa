"""Libraries that components name in a `jsonnetfile.json`, as jsonnet-bundler has it, or in a `jsonnetfile.jsonnet`.

    {"version": 1, "dependencies": [
        {"source": {"git": {"remote": "https://github.com/acme/lib.git", "subdir": "jsonnet"}}, "version": "v1"},
        {"source": {"local": {"directory": "vendored"}}}]}

Each library is visible by its whole name, `github.com/acme/lib/jsonnet`, and by a short one: `name`, or the last part.
A library has one version in a catalog, whichever components use it, and libraries name libraries in turn.
"""

from __future__ import annotations

import posixpath
import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kardinal.catalog.documents import read_json, tree_file
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.fetching import FetchedTree, Fetcher
from kardinal.catalog.hierarchy import joined
from kardinal.tree.repository_url import ssh_spelling

__all__ = ["JSONNETFILE", "JSONNETFILE_TEMPLATE", "Jsonnetfile", "vendored_libraries"]

JSONNETFILE = "jsonnetfile.json"
JSONNETFILE_TEMPLATE = "jsonnetfile.jsonnet"
VENDOR = "vendor"
_LIBRARIES = 500
"""The most libraries of a catalog."""
_SHORT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class Jsonnetfile:
    """The content of a file, with the tree and the directory that it stands in."""

    body: Any
    tree: FetchedTree
    directory: str
    file: str = JSONNETFILE

    @property
    def where(self) -> Where:
        return Where(repository=self.tree.title, file=joined(self.directory, self.file))


@dataclass(frozen=True, slots=True)
class _Git:
    """A dependency on a repository. `name`: its whole name. `short`: the name that it is also imported by."""

    name: str
    short: str
    url: str
    version: str
    directory: str
    alone: bool


@dataclass(frozen=True, slots=True)
class _Local:
    """A dependency on a directory of the same repository."""

    short: str
    directory: str


async def vendored_libraries(fetcher: Fetcher, components: Mapping[str, Jsonnetfile]) -> dict[str, Path]:
    """Fetch all libraries, and return their directories by path below `vendor/`. Raises `CatalogError`."""
    pending = deque(components[name] for name in sorted(components))
    chosen: dict[str, tuple[_Git, Where]] = {}
    shown: dict[str, Path] = {}
    while pending:
        file = pending.popleft()
        for dependency in _dependencies(file):
            if isinstance(dependency, _Local):
                tree = file.tree
                directory = dependency.directory
            else:
                known = chosen.get(dependency.name)
                if known is not None:
                    _check_same(known[0], dependency, known[1], file.where)
                    continue
                chosen[dependency.name] = dependency, file.where
                if len(chosen) > _LIBRARIES:
                    raise CatalogError("limit", f"there are more than {_LIBRARIES} libraries", where=file.where)
                directory = dependency.directory
                tree = await fetcher.fetch(
                    "library", dependency.name, dependency.url, dependency.version, where=file.where
                )
                _show(shown, dependency.name, tree.directory / directory, file.where)
            _show(shown, dependency.short, tree.directory / directory, file.where)
            content = await tree_file(tree.directory, joined(directory, JSONNETFILE))
            if content is not None and not (isinstance(dependency, _Git) and dependency.alone):
                where = Where(repository=tree.title, file=joined(directory, JSONNETFILE))
                pending.append(Jsonnetfile(read_json(content, where), tree, directory))
    return shown


def _dependencies(file: Jsonnetfile) -> Iterator[_Git | _Local]:
    body = file.body
    entries = body.get("dependencies", []) if isinstance(body, dict) else None
    if not isinstance(entries, list):
        raise CatalogError("invalid", "it has no list of dependencies", where=file.where)
    for entry in entries:
        source = entry.get("source") if isinstance(entry, dict) else None
        found = source if isinstance(source, dict) else {}
        name = entry.get("name", "") if isinstance(entry, dict) else ""
        if isinstance(found.get("git"), dict) and isinstance(name, str):
            yield _git(found["git"], entry, name, file)
        elif isinstance(found.get("local"), dict) and isinstance(name, str):
            yield _local(found["local"], name, file)
        else:
            raise CatalogError("invalid", f"{str(entry)[:100]} is no dependency on git or local", where=file.where)


def _git(source: Mapping[str, Any], entry: Mapping[str, Any], name: str, file: Jsonnetfile) -> _Git:
    url = source.get("remote")
    subdir = source.get("subdir") or ""
    version = entry.get("version") or ""
    if not isinstance(url, str) or not url or not isinstance(subdir, str) or not isinstance(version, str):
        raise CatalogError("invalid", f"{str(entry)[:100]} needs a remote and a version", where=file.where)
    directory = _inside(subdir.strip("/"), file)
    parts = urlsplit(ssh_spelling(url))
    host = (parts.hostname or "").lower()
    whole = joined(host, _inside(parts.path.strip("/").removesuffix(".git"), file), directory)
    return _Git(whole, name or posixpath.basename(whole), url, version, directory, entry.get("single") is True)


def _local(source: Mapping[str, Any], name: str, file: Jsonnetfile) -> _Local:
    directory = source.get("directory")
    if not isinstance(directory, str) or not directory:
        raise CatalogError("invalid", "a local dependency needs a directory", where=file.where)
    found = _inside(posixpath.join(file.directory, directory), file)
    return _Local(name or posixpath.basename(found), found)


def _inside(path: str, file: Jsonnetfile) -> str:
    shortest = posixpath.normpath(path) if path else "."
    if path.startswith("/") or shortest.split("/")[0] == "..":
        raise CatalogError("refused", f"{path[:100]} leads out of the repository", where=file.where)
    return "" if shortest == "." else shortest


def _check_same(known: _Git, other: _Git, first: Where, second: Where) -> None:
    if (known.url, known.version) != (other.url, other.version):
        raise CatalogError(
            "invalid",
            f"library {known.name} has version {other.version or 'of the default branch'} here, "
            f"and {known.version or 'of the default branch'} in {first}",
            where=second,
            remedy="A catalog has one version of each library: name the same in both",
        )


def _show(shown: dict[str, Path], name: str, directory: Path, where: Where) -> None:
    if "/" not in name and not _SHORT_NAME.fullmatch(name):
        raise CatalogError("invalid", f"{name[:100]!r} is no name of a library", where=where)
    if shown.setdefault(f"{VENDOR}/{name}", directory) != directory:
        remedy = "Give one of them another name in its jsonnetfile"
        raise CatalogError("invalid", f"two libraries have the name {name}", where=where, remedy=remedy)
