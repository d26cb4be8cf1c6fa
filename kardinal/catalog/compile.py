"""Compile the catalog of one cluster, from its facts to the files that are committed."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kardinal.catalog.collection import collect
from kardinal.catalog.contracts import CatalogSources, Engine
from kardinal.catalog.dependencies import GitDependency, fetch_dependency, read_dependencies
from kardinal.catalog.discovery import (
    Requirement,
    check_instances,
    check_overrides,
    deprecations,
    find_components,
    find_packages,
    instances_of,
    packages_of,
)
from kardinal.catalog.documents import read_json, read_yaml, tree_file
from kardinal.catalog.errors import NOWHERE, CatalogError, Where
from kardinal.catalog.fetching import FetchedTree, Fetcher, at_once
from kardinal.catalog.hierarchy import (
    BOOTSTRAP,
    CLASSES,
    DEPENDENCIES,
    Instance,
    LayoutBuilder,
    Shape,
    joined,
    parameters_key,
    read_shape,
)
from kardinal.catalog.inventory import cluster_class
from kardinal.catalog.jsonnetfile import JSONNETFILE, JSONNETFILE_TEMPLATE, Jsonnetfile, vendored_libraries
from kardinal.catalog.libraries import LIBRARIES, component_libraries, listed_libraries
from kardinal.catalog.lock import LOCK_FILE, Locks, write_lock
from kardinal.catalog.references import reference_files
from kardinal.catalog.values import Cluster, Compiled, Layout, Merged, Node, RenderJob, SourceKind
from kardinal.objects import JsonObject

__all__ = ["Collated", "collate", "compile_catalog"]

_MISSING_COMPONENT = re.compile(r"there is no class (?:components|defaults)\.([a-z0-9_-]++)")


_LISTED_LIBRARIES = "commodore.jsonnet_libs"
_FILTERS = "postprocess/filters.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collated:
    """A hierarchy with all its sources, merged: all that rendering needs.

    `nodes` and `merged` have the bootstrap node and the node of each instance. `trees`: the repositories of components
    and of instances.
    """

    cluster: Cluster
    fetcher: Fetcher
    layout: Layout
    instances: Sequence[Instance]
    components: Mapping[str, Requirement]
    packages: Mapping[str, Requirement]
    nodes: Mapping[str, Node]
    merged: Mapping[str, Merged]
    trees: Mapping[str, FetchedTree]
    notices: Sequence[str] = field(default=())


async def compile_catalog(cluster: Cluster, *, sources: CatalogSources, engine: Engine, locks: Locks) -> Compiled:
    """Return the catalog of a cluster. Raises `CatalogError`."""
    return await render(await collate(cluster, sources=sources, engine=engine, locks=locks), engine)


async def collate(cluster: Cluster, *, sources: CatalogSources, engine: Engine, locks: Locks) -> Collated:
    """Fetch what the hierarchy of a cluster names, and merge it. Raises `CatalogError`."""
    return await _Collation(cluster, Fetcher(sources, locks, cluster), engine).run()


async def render(collated: Collated, engine: Engine) -> Compiled:
    """Render the instances of a merged hierarchy, and collect their files. Raises `CatalogError`."""
    merged = collated.merged
    references = reference_files(
        merged[BOOTSTRAP],
        {instance.name: (instance.component, merged[instance.name]) for instance in collated.instances},
        prefixes=collated.cluster.tenant.ref_prefixes,
    )
    jobs = [
        RenderJob(instance.name, instance.component, await _read_filters(collated, instance), references.tokens)
        for instance in collated.instances
    ]
    rendered = await engine.render(collated.layout, jobs, collated.merged) if jobs else ()
    files = collect(rendered, references.files)
    if jobs and not files:
        names = ", ".join(job.instance for job in jobs)
        raise CatalogError("refused", f"the catalog has no file, though there are instances: {names}")
    versions = collated.fetcher.versions
    notices = [*collated.fetcher.notices, *collated.notices]
    notices += [f"{part.instance}: {notice}" for part in rendered for notice in part.notices]
    return Compiled(
        files={**files, LOCK_FILE: write_lock(versions)},
        versions=versions,
        notices=tuple(dict.fromkeys(notices)),
        instances=tuple(job.instance for job in jobs),
    )


async def _read_filters(collated: Collated, instance: Instance) -> object:
    """Return the list of filters in the repository of a component; None without one."""
    tree = collated.trees[instance.name]
    path = joined(instance.path, _FILTERS)
    content = await tree_file(tree.directory, path)
    if content is None:
        return None
    return await asyncio.to_thread(read_yaml, content, Where(repository=tree.title, file=path))


class _Collation:
    """The steps of `collate`, on one growing layout."""

    def __init__(self, cluster: Cluster, fetcher: Fetcher, engine: Engine) -> None:
        self._cluster = cluster
        self._fetcher = fetcher
        self._engine = engine
        self._places = LayoutBuilder()
        self._trees: dict[str, FetchedTree] = {}
        """The repositories of components and instances by name."""

    async def run(self) -> Collated:
        shape = await self._read_configuration()
        packages, first = await self._add_packages(shape)
        instances = instances_of(first)
        known = find_components(first, instances, self._cluster.tenant)
        await self._add_components(instances, known)
        placed = [Instance(name, component, known[name].path) for name, component in instances.items()]
        components = sorted(set(instances.values()))
        nodes = {BOOTSTRAP: shape.bootstrap_node(components)}
        nodes |= {instance.name: shape.instance_node(instance, components) for instance in placed}
        layout = await self._places.layout()
        merged = await self._engine.merge(layout, nodes, tolerate_missing=False)
        bootstrap = merged[BOOTSTRAP]
        check_overrides(bootstrap, instances, self._cluster.tenant)
        check_instances(instances, merged)
        notices = deprecations(components, bootstrap.parameters)
        notices += await self._add_libraries({name: known[name].path for name in components}, bootstrap.parameters)
        await self._add_dependencies(placed, merged)
        return Collated(
            cluster=self._cluster,
            fetcher=self._fetcher,
            layout=await self._places.layout(),
            instances=placed,
            components=known,
            packages=packages,
            nodes=nodes,
            merged=merged,
            trees=self._trees,
            notices=notices,
        )

    async def _read_configuration(self) -> Shape:
        """Fetch the two configuration repositories, and show them with the facts of the cluster."""
        cluster = self._cluster
        tenant = cluster.tenant
        global_ = cluster.global_ or tenant.global_
        inventory = cluster.inventory or tenant.inventory
        fetch = partial(self._fetcher.fetch, where=NOWHERE, chosen=True)
        shared, own = await at_once(
            (
                fetch("global", "global", global_.url, global_.revision),
                fetch("inventory", tenant.name, inventory.url, inventory.revision),
            )
        )
        self._places.link(f"{CLASSES}/global", shared.directory)
        self._places.link(f"{CLASSES}/{tenant.name}", own.directory)
        shape = await read_shape(cluster, shared, own)
        self._places.file(f"{CLASSES}/params/cluster.yml", cluster_class(cluster, shape.components))
        return shape

    async def _add_packages(self, shape: Shape) -> tuple[dict[str, Requirement], Merged]:
        """Fetch the packages, until no class of a package adds another one; return the merged bootstrap node."""
        packages: dict[str, Requirement] = {}
        while True:
            merged = await self._merge_bootstrap(shape, tolerate_missing=True)
            names = packages_of(merged, self._cluster.tenant.name)
            found = find_packages(merged, names)
            for name in packages.keys() & found.keys():
                if packages[name] != found[name]:
                    message = f"package {name} is changed by a package that is read after it"
                    raise CatalogError("invalid", message, where=Where(parameter=f"packages.{name}"))
            new = {name: found[name] for name in names if name not in packages}
            if not new:
                return packages, await self._merge_bootstrap(shape, tolerate_missing=False)
            await at_once(self._add_package(name, requirement) for name, requirement in new.items())
            packages |= new

    async def _add_package(self, name: str, wanted: Requirement) -> None:
        tree = await self._fetch("package", name, wanted, f"packages.{name}")
        self._places.link(f"{DEPENDENCIES}/pkg.{name}", tree.directory)
        directory = tree.directory / wanted.path
        if not await asyncio.to_thread(directory.is_dir):
            where = Where(repository=tree.title, parameter=f"packages.{name}.path")
            raise CatalogError("invalid", f"there is no directory {wanted.path}", where=where)
        self._places.link(f"{CLASSES}/{name}", directory)

    async def _merge_bootstrap(self, shape: Shape, *, tolerate_missing: bool) -> Merged:
        layout = await self._places.layout()
        nodes = {BOOTSTRAP: shape.bootstrap_node()}
        try:
            return (await self._engine.merge(layout, nodes, tolerate_missing=tolerate_missing))[BOOTSTRAP]
        except CatalogError as error:
            missing = _MISSING_COMPONENT.search(error.message)
            if missing is None:
                raise
            raise CatalogError(
                "invalid",
                error.message,
                remedy=f"Components are no classes: add {missing[1]} to applications, and remove the class",
            ) from None

    async def _add_components(self, instances: Mapping[str, str], known: Mapping[str, Requirement]) -> None:
        await at_once(
            self._add_component(name, instances.get(name, name), requirement) for name, requirement in known.items()
        )

    async def _add_component(self, name: str, component: str, wanted: Requirement) -> None:
        """Fetch the repository of a component or instance, and show it with its two classes."""
        tree = await self._fetch("component", name, wanted, f"components.{name}")
        self._trees[name] = tree
        self._places.link(f"{DEPENDENCIES}/{name}", tree.directory)
        for kind, file in (("components", f"class/{component}.yml"), ("defaults", "class/defaults.yml")):
            path = joined(wanted.path, file)
            if await tree_file(tree.directory, path) is None:
                raise CatalogError(
                    "invalid", "a component needs this file", where=Where(repository=tree.title, file=path)
                )
            self._places.link(f"{CLASSES}/{kind}/{name}.yml", tree.directory / path)

    async def _add_libraries(self, paths: Mapping[str, str], parameters: JsonObject) -> Sequence[str]:
        """Show the libraries of components, with the directory of each; return notices."""
        components = {name: (self._trees[name], path) for name, path in paths.items()}
        libraries, notices = await component_libraries(components, parameters)
        listed = await listed_libraries(self._fetcher, parameters)
        for name, file in libraries.items():
            self._places.link(f"{LIBRARIES}/{name}", file)
        for path, file in listed.items():
            if self._places.target(path) is not None:
                raise CatalogError("invalid", f"a component has {path}, too", where=Where(parameter=_LISTED_LIBRARIES))
            self._places.link(path, file)
        files: dict[str, Jsonnetfile] = {}
        for name, (tree, _) in components.items():
            self._places.link(f"vendor/{name}", tree.directory)
            found = await self._read_jsonnetfile(name, tree, parameters)
            if found is not None:
                files[name] = found
        for path, directory in (await vendored_libraries(self._fetcher, files)).items():
            if (shown := self._places.target(path)) is not None and shown != directory:
                raise CatalogError("invalid", f"a library has the name of a component: {path}")
            self._places.link(path, directory)
        return notices

    async def _read_jsonnetfile(self, name: str, tree: FetchedTree, parameters: JsonObject) -> Jsonnetfile | None:
        """Return the list of libraries in the repository of a component, which may be a template."""
        if await tree_file(tree.directory, JSONNETFILE_TEMPLATE) is not None:
            own = parameters.get(parameters_key(name))
            given = own.get("jsonnetfile_parameters") if isinstance(own, dict) else None
            variables = given if isinstance(given, dict) else {}
            if not all(isinstance(value, str) for value in variables.values()):
                where = Where(parameter=f"{parameters_key(name)}.jsonnetfile_parameters")
                raise CatalogError("invalid", "has to have strings only", where=where)
            file = f"{DEPENDENCIES}/{name}/{JSONNETFILE_TEMPLATE}"
            body = await self._engine.evaluate(await self._places.layout(), file, variables)
            return Jsonnetfile(body, tree, "", JSONNETFILE_TEMPLATE)
        content = await tree_file(tree.directory, JSONNETFILE)
        if content is None:
            return None
        return Jsonnetfile(read_json(content, Where(repository=tree.title, file=JSONNETFILE)), tree, "")

    async def _add_dependencies(self, instances: Sequence[Instance], merged: Mapping[str, Merged]) -> None:
        """Show what the instances name in `kapitan.dependencies`."""
        wanted: dict[str, GitDependency] = {}
        for instance in instances:
            for dependency in read_dependencies(instance.name, merged[instance.name]):
                known = wanted.setdefault(dependency.output_path, dependency)
                if known.source != dependency.source:
                    message = (
                        f"{known.instance} and {instance.name} have other dependencies at {dependency.output_path}"
                    )
                    raise CatalogError("invalid", message, where=dependency.where)
        trees = await at_once(fetch_dependency(self._fetcher, dependency) for dependency in wanted.values())
        for path, directory in zip(wanted, trees, strict=True):
            self._places.link(path, directory)

    async def _fetch(self, kind: SourceKind, name: str, wanted: Requirement, parameter: str) -> FetchedTree:
        where = Where(parameter=parameter)
        return await self._fetcher.fetch(kind, name, wanted.url, wanted.version, where=where)
