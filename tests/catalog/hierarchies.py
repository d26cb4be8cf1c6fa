"""Hierarchies in bare repositories that are made at test time, and their catalogs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pygit2
import yaml

from kardinal.catalog.compile import compile_catalog
from kardinal.catalog.inventory import read_inventory
from kardinal.catalog.lock import Locks
from kardinal.catalog.values import Compiled
from kardinal.cli.catalog.sources import CallerSources, caller_sources
from tests.catalog.in_process import InProcessEngine

__all__ = ["NO_LOCKS", "Hierarchy", "component"]

NO_LOCKS = Locks()

_FACTS = {"distribution": "k3s", "cloud": "exo"}
_AUTHOR = pygit2.Signature("Tester", "tester@example.com", 1_767_225_600, 0)


def component(name: str, *, defaults: str = "{}", **files: str) -> dict[str, str]:
    """Return the files of a component with these parameters as YAML in flow style, and further files."""
    key = name.replace("-", "_")
    return {
        f"class/{name}.yml": "parameters: {}\n",
        "class/defaults.yml": f"parameters:\n  {key}: {defaults}\n",
        **files,
    }


@dataclass
class Hierarchy:
    """One tenant `t-acme` with one cluster `c-one`, whose repositories are directories below `root`."""

    root: Path
    spec: dict[str, Any] = field(default_factory=dict)
    """Further fields of the CatalogTenant."""

    def url(self, name: str) -> str:
        return (self.root / f"{name}.git").as_uri()

    def commit(self, name: str, files: Mapping[str, str | None], *, branch: str = "main", tag: str = "") -> str:
        """Put these files beside those of a branch, as a new commit, and return its id. None deletes a file."""
        place = self.root / f"{name}.git"
        if not place.exists():
            pygit2.init_repository(str(place), bare=True, initial_head="main")
        repository = pygit2.Repository(str(place))
        ref = f"refs/heads/{branch}"
        start = ref if ref in repository.references else "refs/heads/main"
        parents = [repository.references[start].target] if start in repository.references else []
        index = pygit2.Index()
        if parents:
            index.read_tree(repository[parents[0]].peel(pygit2.Tree))
        for path, content in files.items():
            if content is None:
                index.remove(path)
            else:
                blob = repository.create_blob(dedent(content).encode())
                index.add(pygit2.IndexEntry(path, blob, pygit2.enums.FileMode.BLOB))
        tree = index.write_tree(repository)
        commit = repository.create_commit(None, _AUTHOR, _AUTHOR, "Change", tree, parents)
        repository.references.create(ref, commit, force=True)
        if tag:
            repository.references.create(f"refs/tags/{tag}", commit, force=True)
        return str(commit)

    def configure(self, common: str, *, tenant: str = "") -> None:
        """Write the classes of the global repository and of the tenant; `${ROOT}` is the URL of the repositories."""
        commodore = "classes: [global.common, '${cluster:tenant}.${cluster:name}']\n"
        root = self.root.as_uri()
        self.commit("global", {"commodore.yml": commodore, "common.yml": dedent(common).replace("${ROOT}", root)})
        self.commit("t-acme", {"c-one.yml": dedent(tenant).replace("${ROOT}", root) or "parameters: {}\n"})

    def documents(self, **cluster: Any) -> list[dict[str, Any]]:
        """Return the two documents; `cluster` has further fields of the CatalogCluster."""
        repositories = {"global": {"url": self.url("global")}, "inventory": {"url": self.url("t-acme")}}
        one = {
            "displayName": "One",
            "tenant": "t-acme",
            "facts": _FACTS,
            "catalog": {"url": "https://git.example.com/c"},
        }
        return [
            _document("CatalogTenant", "t-acme", {"displayName": "Acme Ltd"} | repositories | self.spec),
            _document("CatalogCluster", "c-one", one | cluster),
        ]

    def write_documents(self, **cluster: Any) -> Path:
        """Write the documents into a file, and return its path."""
        file = self.root / "inventory.yaml"
        file.write_text(yaml.safe_dump_all(self.documents(**cluster)))
        return file

    async def compile(self, locks: Locks = NO_LOCKS, **cluster: Any) -> Compiled:
        """Return the catalog of the cluster."""
        async with self.sources() as sources:
            found = read_inventory(self.documents(**cluster))["c-one"]
            return await compile_catalog(found, sources=sources, engine=InProcessEngine(), locks=locks)

    async def parameters(self, locks: Locks = NO_LOCKS, **cluster: Any) -> dict[str, Any]:
        """Return the merged parameters of each instance."""
        compiled = await self.compile(locks, **cluster)
        return {
            path.split("/")[1]: json.loads(content)
            for path, content in compiled.files.items()
            if path.endswith("parameters.json")
        }

    @asynccontextmanager
    async def sources(self) -> AsyncIterator[CallerSources]:
        async with caller_sources(self.root / "cache", offline=False) as sources:
            yield sources


def _document(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "kardinal.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
