"""The input and the result of a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kardinal.objects import JsonObject

__all__ = [
    "Cluster",
    "Compiled",
    "ConfigRepository",
    "InstanceFiles",
    "Layout",
    "Merged",
    "Node",
    "RenderJob",
    "SourceKind",
    "SourceVersion",
    "Tenant",
]


@dataclass(frozen=True, slots=True)
class ConfigRepository:
    """A repository with configuration. `revision`: a branch, tag or commit; empty is the default branch."""

    url: str
    revision: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """The document CatalogTenant."""

    name: str
    display_name: str
    global_: ConfigRepository
    inventory: ConfigRepository
    component_base_url: str = ""
    sources: tuple[str, ...] = ()
    """Prefixes of URLs that the hierarchy may name; empty are the folders of the three URLs above."""
    ref_prefixes: tuple[str, ...] = ()
    """Beginnings of the paths of secret references; empty allows every path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The document CatalogCluster, with its tenant."""

    name: str
    display_name: str
    tenant: Tenant
    facts: Mapping[str, str]
    dynamic_facts: JsonObject = field(default_factory=dict)
    global_: ConfigRepository | None = None
    """Replaces the tenant's."""
    inventory: ConfigRepository | None = None
    """Replaces the tenant's."""
    catalog_url: str = ""
    """The URL of the repository in which the catalog lies, as templates see it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the hierarchy before the merge: the classes that it includes, in order, and its own parameters."""

    classes: tuple[str, ...]
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Merged:
    """A node after the merge. The keys of `parameters` are sorted at every depth; no reference is left in them."""

    applications: tuple[str, ...]
    classes: tuple[str, ...]
    """All classes that took part, in the order of their merge."""
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class Layout:
    """The directory that a compilation sees; paths are relative, with `/`.

    `links`: directories and files of trees, for example `{"inventory/classes/global": Path("/cache/trees/1f2e…")}`.
    `files`: files with their content, for example `inventory/classes/params/cluster.yml`.
    """

    links: Mapping[str, Path]
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One instance to render: its inputs, then its filters, which stand in its node.

    `filters`: the content of the component's `postprocess/filters.yml` as JSON, for filters beside those of the class;
    None without such a file. `references`: for each secret reference of the instance as its parameters write it, such
    as `?{vaultkv:a/b}`, the token that takes its place in what is rendered.
    """

    instance: str
    component: str
    filters: object = None
    references: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class InstanceFiles:
    """The files of one instance, by path below `manifests/`."""

    instance: str
    files: Mapping[str, bytes]
    notices: tuple[str, ...] = ()
    executable: frozenset[str] = frozenset()
    """The paths of those files whose template may be executed."""


SourceKind = Literal["global", "inventory", "component", "package", "library", "chart", "dependency"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class SourceVersion:
    """The commit or digest that a name stood for: an entry of the lock and of the output `versions`."""

    kind: SourceKind
    name: str
    url: str
    requested: str
    """The branch, tag or commit that the hierarchy names; empty is the default branch."""
    resolved: str
    """A commit, or the digest of a chart or file: `sha256:…`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A catalog. `files`: all files below `manifests/` and `refs/`, by path, and `catalog.lock.yaml`."""

    files: Mapping[str, bytes]
    versions: tuple[SourceVersion, ...]
    notices: tuple[str, ...]
    instances: tuple[str, ...]
