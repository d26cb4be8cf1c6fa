"""The directory that classes and templates see, which is Commodore's, and the nodes that the hierarchy is merged into.

    inventory/classes/params/cluster.yml         facts of the cluster
    inventory/classes/global, …/<tenant>         the two configuration repositories
    inventory/classes/<package>                  packages; their repositories are dependencies/pkg.<package>
    inventory/classes/{defaults,components}/     the two classes of each component, and of each instance
    dependencies/<component or instance>         the repository of a component
    dependencies/lib/                            libraries of all components
    vendor/                                      libraries from a jsonnetfile

A hierarchy has one of two shapes. Commodore's starts at the class `global.commodore`, which includes everything else.
The older shape has no such class: it starts at `global.common`, and a `global/commodore.yml` may list URLs of
components only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kardinal.catalog.documents import read_yaml, tree_file, tree_names
from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.fetching import FetchedTree
from kardinal.catalog.values import Cluster, Layout, Node
from kardinal.objects import JsonObject
from kardinal.processes.threads import off_loop

__all__ = ["BOOTSTRAP", "CLASSES", "DEPENDENCIES", "Instance", "LayoutBuilder", "Shape", "parameters_key", "read_shape"]

BOOTSTRAP = "cluster"
"""The node from which packages, components and instances are read; no instance may have its name."""
CLASSES = "inventory/classes"
DEPENDENCIES = "dependencies"
_FACTS = "params.cluster"
_KUSTOMIZE_WRAPPER = "kustomize-wrapper"
"""The value of `${_kustomize_wrapper}`, by which an input of type `external` is recognised as a kustomization."""
_CLASS_FILES = ("{}.yml", "{}.yaml", "{}/init.yml", "{}/init.yaml")


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a component. `path`: the directory of the component in its repository; empty is the root."""

    name: str
    component: str
    path: str

    @property
    def base_directory(self) -> str:
        """The directory of the component, as templates see it."""
        return joined(DEPENDENCIES, self.name, self.path)


@dataclass(frozen=True, slots=True)
class Shape:
    """The classes with which the hierarchy starts, and URLs of components that are defaults of all classes."""

    classes: tuple[str, ...]
    components: Mapping[str, JsonObject] = field(default_factory=dict)

    def bootstrap_node(self, components: Collection[str] = ()) -> Node:
        """Return the bootstrap node with the defaults of these components."""
        defaults = [f"defaults.{name}" for name in sorted(components)]
        return Node((_FACTS, *defaults, *self.classes), {"_instance": BOOTSTRAP})

    def instance_node(self, instance: Instance, components: Collection[str]) -> Node:
        """Return the node of an instance, which sees the defaults of all components and its class last."""
        own = instance.name
        defaults = [f"defaults.{own if name == instance.component else name}" for name in sorted(components)]
        parameters: JsonObject = {
            "_instance": own,
            "_base_directory": instance.base_directory,
            "_kustomize_wrapper": _KUSTOMIZE_WRAPPER,
            "kapitan": {"vars": {"target": own}},
        }
        if own != instance.component:
            parameters[parameters_key(own)] = {}
            parameters[parameters_key(instance.component)] = f"${{{parameters_key(own)}}}"
        return Node((_FACTS, *defaults, *self.classes, f"components.{own}"), parameters)


async def read_shape(cluster: Cluster, global_: FetchedTree, inventory: FetchedTree) -> Shape:
    """Return the shape of a hierarchy. Raises `CatalogError` for a mixture, and for a class of the older shape."""
    if not await _has_class(global_, "commodore"):
        return await _older_shape(cluster, global_, inventory, {})
    where = Where(repository=global_.title, file="commodore.yml")
    content = await tree_file(global_.directory, "commodore.yml")
    body = await asyncio.to_thread(read_yaml, content, where) if content is not None else None
    if not isinstance(body, dict) or "components" not in body:
        return Shape(("global.commodore",))
    if set(body) != {"components"}:
        raise CatalogError(
            "invalid",
            f"components stands beside {', '.join(sorted(map(str, set(body) - {'components'})))}",
            where=where,
            remedy="Move URLs of components below parameters.components, or the other keys into common.yml",
        )
    return await _older_shape(cluster, global_, inventory, _component_urls(body["components"], where))


def parameters_key(name: str) -> str:
    """Return the parameter that holds the values of a component or instance: `argo_cd` of `argo-cd`."""
    return name.replace("-", "_")


def joined(*parts: str) -> str:
    """Return a path of these parts, of which some may be empty."""
    return "/".join(part for part in parts if part)


class LayoutBuilder:
    """The layout of one compilation while its trees arrive."""

    def __init__(self) -> None:
        self._links: dict[str, Path] = {}
        self._files: dict[str, bytes] = {}

    def link(self, path: str, target: Path) -> None:
        """Show a file or directory of a tree at `path`."""
        self._links[path] = target

    def file(self, path: str, content: bytes) -> None:
        """Show a file with this content at `path`."""
        self._files[path] = content

    def target(self, path: str) -> Path | None:
        """Return the file or directory that is shown at `path` itself."""
        return self._links.get(path)

    async def layout(self) -> Layout:
        """Return the layout as it is now, in which no path lies below a link.

        A chart is shown within the directory of its component, for example: that directory is then made of links to
        the entries of its tree.
        """
        links = await asyncio.to_thread(_spread, self._links, self._files)
        return Layout(links, dict(self._files))


@off_loop
def _spread(links: Mapping[str, Path], files: Mapping[str, bytes]) -> dict[str, Path]:
    spread = dict(links)
    for path in sorted([*links, *files], key=lambda path: path.count("/")):
        parts = path.split("/")
        for depth in range(1, len(parts)):
            above = "/".join(parts[:depth])
            directory = spread.pop(above, None)
            if directory is not None and directory.is_dir():
                for entry in directory.iterdir():
                    # The links of a tree stay inside of it.
                    if entry.exists():
                        spread.setdefault(f"{above}/{entry.name}", entry.resolve() if entry.is_symlink() else entry)
        if path in files:
            spread.pop(path, None)
    return dict(sorted(spread.items()))


async def _older_shape(
    cluster: Cluster, global_: FetchedTree, inventory: FetchedTree, components: Mapping[str, JsonObject]
) -> Shape:
    facts = cluster.facts
    wanted = (
        (global_, "global", "common"),
        (global_, "global", f"distribution.{facts['distribution']}"),
        (global_, "global", f"cloud.{facts['cloud']}"),
        (inventory, cluster.tenant.name, cluster.name),
    )
    for tree, _, name in wanted:
        if not await _has_class(tree, name.replace(".", "/")):
            raise CatalogError(
                "invalid",
                "this class is missing",
                where=Where(repository=tree.title, file=f"{name.replace('.', '/')}.yml"),
                remedy="Add it, or commodore.yml to the global repository with the classes of all clusters",
            )
    return Shape(tuple(f"{start}.{name}" for _, start, name in wanted), components)


async def _has_class(tree: FetchedTree, path: str) -> bool:
    for form in _CLASS_FILES:
        directory, _, name = form.format(path).rpartition("/")
        if (await tree_names(tree.directory, directory)).get(name) is False:
            return True
    return False


def _component_urls(entries: object, where: Where) -> dict[str, JsonObject]:
    if not isinstance(entries, list):
        raise CatalogError("invalid", "components has to be a list of name and url", where=where)
    urls: dict[str, JsonObject] = {}
    for entry in entries:
        known = isinstance(entry, dict) and set(entry) == {"name", "url"}
        if not known or not all(isinstance(value, str) and value for value in entry.values()):
            raise CatalogError("invalid", f"{str(entry)[:100]} has to have name and url", where=where)
        if entry["name"] in urls:
            raise CatalogError("invalid", f"component {entry['name']} is there twice", where=where)
        urls[entry["name"]] = {"url": entry["url"]}
    return urls
