"""The Jsonnet libraries that components offer to each other, all visible as `lib/<name>`.

A library has the name of its component at its beginning: `nginx.libsonnet` or `nginx-ingress.libsonnet`. A component
may offer it under further names by `_metadata.library_aliases`, for example under the name of a component that it
replaces. `parameters.commodore.jsonnet_libs` adds files of other repositories.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kardinal.catalog.discovery import metadata_of
from kardinal.catalog.documents import tree_names
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.fetching import FetchedTree, Fetcher
from kardinal.catalog.hierarchy import DEPENDENCIES, joined
from kardinal.objects import JsonObject

__all__ = ["LIBRARIES", "component_libraries", "listed_libraries"]

LIBRARIES = f"{DEPENDENCIES}/lib"


@dataclass(frozen=True, slots=True)
class _Library:
    """A library: its file or directory, and its component."""

    component: str
    file: Path


async def component_libraries(
    components: Mapping[str, tuple[FetchedTree, str]], parameters: JsonObject
) -> tuple[dict[str, Path], Sequence[str]]:
    """Return the libraries of components by name, with those of aliases, and notices.

    `components` has the tree of each, and its directory in the tree. Raises `CatalogError`.
    """
    own: dict[str, dict[str, Path]] = {}
    for component, (tree, path) in components.items():
        directory = joined(path, "lib")
        names = [name for name in await tree_names(tree.directory, directory) if not name.startswith(".")]
        for name in names:
            _check_name(name, component, components, tree)
        own[component] = {name: tree.directory / directory / name for name in names}
    found = {name: _Library(component, file) for component, files in own.items() for name, file in files.items()}
    notices: list[str] = []
    aliased: dict[str, str] = {}
    known = parameters.get("components")
    prefixes = set(known if isinstance(known, dict) else ()) | set(components)
    for component in components:
        metadata = metadata_of(parameters, component)
        allowed = _replaced(component, metadata, components, parameters, notices)
        for alias, name in sorted(_aliases(component, metadata).items()):
            _check_alias(alias, component, prefixes - {component, allowed}, aliased)
            aliased[alias] = component
            if name in own[component]:
                found[alias] = _Library(component, own[component][name])
            else:
                notices.append(f"Component {component} has no library {name}, which its alias {alias} names.")
    return {name: library.file for name, library in sorted(found.items())}, notices


async def listed_libraries(fetcher: Fetcher, parameters: JsonObject) -> dict[str, Path]:
    """Fetch the libraries of `commodore.jsonnet_libs`, and return what is shown of them, by path."""
    commodore = parameters.get("commodore")
    entries = commodore.get("jsonnet_libs") if isinstance(commodore, dict) else None
    shown: dict[str, Path] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        where = Where(parameter=f"commodore.jsonnet_libs[{index}]")
        name, url, version = (_text(entry, field, where) for field in ("name", "repository", "version"))
        if not name or "/" in name or name.startswith(".") or not url:
            raise CatalogError("invalid", "a library needs a name and a repository", where=where)
        tree = await fetcher.fetch("library", name, url, version, where=where)
        shown[f"{DEPENDENCIES}/libs/{name}"] = tree.directory
        files = entry.get("files")
        for file in files if isinstance(files, list) else ():
            source = _inside(_text(file, "libfile", where))
            target = _inside(_text(file, "targetfile", where))
            if not source or not target:
                raise CatalogError("invalid", "a file needs libfile and targetfile, both relative", where=where)
            place = f"{LIBRARIES}/{target}"
            if place in shown:
                raise CatalogError("invalid", f"two libraries give lib/{target}", where=where)
            if not (await tree_names(tree.directory, posixpath.dirname(source))).keys() & {posixpath.basename(source)}:
                raise CatalogError("invalid", f"there is no file {source}", where=Where(repository=tree.title))
            shown[place] = tree.directory / source
    return shown


def _check_name(name: str, component: str, components: Iterable[str], tree: FetchedTree) -> None:
    stem = Path(name).stem
    longer = [other for other in components if other != component and other.startswith(component)]
    owner = next((other for other in longer if stem.startswith(other)), None)
    where = Where(repository=tree.title, file=f"lib/{name}")
    if owner is not None:
        raise CatalogError("invalid", f"the name of this library belongs to component {owner}", where=where)
    if not stem.startswith(component):
        raise CatalogError(
            "invalid",
            f"the name of a library of this component begins with {component}",
            where=where,
            remedy="Rename it, and offer the old name by _metadata.library_aliases",
        )


def _aliases(component: str, metadata: JsonObject) -> dict[str, str]:
    aliases = metadata.get("library_aliases") or {}
    valid = isinstance(aliases, dict) and all(
        isinstance(name, str) and isinstance(alias, str) and alias and "/" not in alias and alias not in (".", "..")
        for alias, name in aliases.items()
    )
    if not valid:
        where = Where(parameter=f"{component}._metadata.library_aliases")
        raise CatalogError("invalid", "has to be a mapping of new names to names of libraries", where=where)
    return dict(aliases)


def _check_alias(alias: str, component: str, prefixes: Collection[str], aliased: Mapping[str, str]) -> None:
    where = Where(parameter=f"{component}._metadata.library_aliases")
    owner = next((prefix for prefix in sorted(prefixes) if alias.startswith(prefix)), None)
    if owner is not None:
        message = f"the alias {alias} begins with the name of component {owner}"
        raise CatalogError("invalid", message, where=where, remedy=f"Set _metadata.replaces, if it replaces {owner}")
    if alias in aliased:
        raise CatalogError("invalid", f"components {aliased[alias]} and {component} both alias {alias}", where=where)


def _replaced(
    component: str,
    metadata: JsonObject,
    components: Collection[str],
    parameters: JsonObject,
    notices: list[str],
) -> str:
    """Return the component whose name the libraries of its replacement may have; empty for none."""
    other = str(metadata.get("replaces") or "")
    if not other or other not in components:
        return other
    replaced = metadata_of(parameters, other)
    if replaced.get("deprecated", False) and replaced.get("replaced_by") == component:
        return other
    reason = "does not name it as its replacement" if replaced.get("deprecated", False) else "is not deprecated"
    notices.append(f"Component {component} may not use the name of {other}, which is there too and {reason}.")
    return ""


def _text(entry: Any, field: str, where: Where) -> str:
    value = entry.get(field) if isinstance(entry, dict) else None
    if value is not None and not isinstance(value, str):
        raise CatalogError("invalid", f"{field} has to be a string", where=where)
    return value or ""


def _inside(path: str) -> str:
    """Return a relative path in its shortest form; empty for one that leads out of its directory."""
    shortest = posixpath.normpath(path) if path else "."
    return "" if path.startswith("/") or shortest.split("/")[0] in (".", "..") else shortest
