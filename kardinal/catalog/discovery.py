"""Read from a merged node which packages, components and instances a cluster has, and at which versions.

Entries of `applications` name them: `nginx`, `nginx as ingress` for an instance of it, `pkg.monitoring` for a package.
`parameters.components` and `parameters.packages` have their URLs and versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.hierarchy import BOOTSTRAP, parameters_key
from kardinal.catalog.values import Merged, Tenant
from kardinal.objects import JsonObject
from kardinal.objects.suggestions import nearest

__all__ = [
    "Requirement",
    "check_instances",
    "check_overrides",
    "deprecations",
    "find_components",
    "find_packages",
    "instances_of",
    "metadata_of",
    "packages_of",
]

_PACKAGE = "pkg."
_RESERVED = re.compile(r"components|defaults|global|params")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?")
_FIELDS = ("url", "version", "path")


@dataclass(frozen=True, slots=True)
class Requirement:
    """The repository, version and directory of a component, an instance or a package.

    `version`: empty is the default branch. `path`: the directory in the repository; empty is its root.
    """

    url: str
    version: str
    path: str


def packages_of(merged: Merged, tenant: str) -> list[str]:
    """Return the names of the packages, sorted."""
    names = sorted(entry.removeprefix(_PACKAGE) for entry in merged.applications if entry.startswith(_PACKAGE))
    for name in names:
        if _RESERVED.fullmatch(name) or name == tenant:
            raise _invalid(f"a package may not be called {name}: the hierarchy has other classes of this name")
        if name.startswith("t-"):
            raise _invalid(f"package {name}: names that begin with t- belong to the inventories of tenants")
        _check_name("package", name)
    return names


def instances_of(merged: Merged) -> dict[str, str]:
    """Return the component of each instance by the instance's name, sorted."""
    found: dict[str, set[str]] = {}
    for entry in merged.applications:
        if not entry.startswith(_PACKAGE):
            component, separator, name = entry.partition(" as ")
            name = name if separator else component
            _check_name("component", component)
            _check_name("instance", name)
            found.setdefault(name, set()).add(component)
    for name, components in sorted(found.items()):
        if name in components and len(components) > 1:
            others = components - {name}
            verb = "alias" if len(others) > 1 else "aliases"
            raise _invalid(f"{_components(others)} {verb} existing component '{name}'")
        if len(components) > 1:
            raise _invalid(f"duplicate alias '{name}': {_components(components)} are aliased to it")
        if name == BOOTSTRAP:
            raise _invalid(f"no instance may be called {BOOTSTRAP}", remedy=f"Write `… as {BOOTSTRAP}-1`, for example")
    return {name: min(components) for name, components in sorted(found.items())}


def find_packages(merged: Merged, names: Iterable[str]) -> dict[str, Requirement]:
    """Return the requirement of each package."""
    known = _mapping(merged.parameters, "packages")
    return {name: _requirement("packages", name, known, None, "") for name in names}


def find_components(merged: Merged, instances: Mapping[str, str], tenant: Tenant) -> dict[str, Requirement]:
    """Return the requirement of each component and instance.

    An instance has the URL, version and path of its component, unless it has an entry of its own.
    """
    parameters = merged.parameters
    for name in sorted(set(_mapping(parameters, "components")) & set(_mapping(parameters, "component_versions"))):
        raise _invalid(
            f"component {name} stands in both",
            parameter="component_versions",
            remedy=f"Write all of it to parameters.components.{name}",
        )
    known = _versions(parameters)
    found: dict[str, Requirement] = {}
    for name in sorted(set(instances.values())):
        found[name] = _requirement("components", name, known, None, tenant.component_base_url)
    for name, component in instances.items():
        if name != component:
            found[name] = _requirement("components", name, known, found[component], "")
    return found


def check_overrides(merged: Merged, instances: Mapping[str, str], tenant: Tenant) -> None:
    """Raise `CatalogError` for versions of components and packages that have no URL, as a wrong name has none."""
    components = _versions(merged.parameters)
    packages = _mapping(merged.parameters, "packages")
    used = set(instances) | set(instances.values())
    without = [
        f"component '{name}'"
        for name, entry in sorted(components.items())
        if name not in used and not _has_url(entry) and not tenant.component_base_url
    ]
    without += [f"package '{name}'" for name, entry in sorted(packages.items()) if not _has_url(entry)]
    if without:
        with_url = [name for name, entry in components.items() if _has_url(entry)]
        near = nearest(without[0].partition("'")[2].rstrip("'"), with_url)
        raise _invalid(
            f"a version without a URL: {', '.join(without)}",
            parameter="components",
            remedy=f"Did you mean {near}?" if near else "Add its url, or remove the entry",
        )


def check_instances(instances: Mapping[str, str], merged: Mapping[str, Merged]) -> None:
    """Raise `CatalogError` for an instance that its component does not allow."""
    bootstrap = merged[BOOTSTRAP].parameters
    overrides = _versions(bootstrap)
    for name, component in instances.items():
        if name == component:
            continue
        if not metadata_of(bootstrap, component).get("multi_instance", False):
            raise CatalogError(
                "invalid",
                f"component {component} does not support instances",
                where=Where(instance=name),
                remedy=f"Set _metadata.multi_instance in its class/defaults.yml, or add {component} to applications",
            )
        supported = all(
            metadata_of(parameters, component).get("multi_version", False)
            for parameters in (bootstrap, merged[name].parameters)
        )
        entry = overrides.get(name)
        if isinstance(entry, dict) and (entry.get("url") or entry.get("version")) and not supported:
            raise CatalogError(
                "invalid",
                f"component {component} does not support instances of another version",
                where=Where(instance=name, parameter=f"components.{name}"),
                remedy="Set _metadata.multi_version in class/defaults.yml of both versions",
            )


def deprecations(components: Iterable[str], parameters: JsonObject) -> list[str]:
    """Return a notice for each component that is deprecated."""
    notices = []
    for component in components:
        metadata = metadata_of(parameters, component)
        if metadata.get("deprecated", False):
            parts = [f"Component {component} is deprecated."]
            parts += [f"Use component {metadata['replaced_by']} instead."] if "replaced_by" in metadata else []
            parts += [str(metadata["deprecation_notice"])] if "deprecation_notice" in metadata else []
            notices.append(" ".join(parts))
    return notices


def metadata_of(parameters: JsonObject, component: str) -> JsonObject:
    """Return `_metadata` of a component; empty if it has none."""
    return _mapping(_mapping(parameters, parameters_key(component)), "_metadata")


def _requirement(key: str, name: str, known: JsonObject, base: Requirement | None, base_url: str) -> Requirement:
    kind = key.removesuffix("s")
    entry = known.get(name)
    if entry is None and base is None and not base_url:
        near = nearest(name, known)
        remedy = f"Did you mean {near}? " if near else ""
        raise _invalid(
            f"unknown {kind} '{name}'",
            parameter=f"{key}.{name}",
            remedy=f"{remedy}Add its url to parameters.{key}, or componentBaseURL to the CatalogTenant",
        )
    entry = {} if entry is None else entry
    if not isinstance(entry, dict):
        raise _invalid("has to be a mapping of url, version and path", parameter=f"{key}.{name}")
    values: dict[str, str] = {}
    for field in _FIELDS:
        value = entry.get(field)
        if value is not None and not isinstance(value, str):
            raise _invalid("has to be a string: put it in quotes", parameter=f"{key}.{name}.{field}")
        values[field] = value or ""
    url = values["url"] or (base.url if base else "")
    if not url and base_url:
        url = f"{base_url.rstrip('/')}/{name}.git"
    if not url:
        raise _invalid(f"{kind} '{name}' has no url", parameter=f"{key}.{name}.url")
    version = values["version"] or (base.version if base else "")
    path = values["path"].strip("/") or (base.path if base else "")
    if path and any(part in ("", ".", "..") for part in path.split("/")):
        raise _invalid("has to be a directory of the repository", parameter=f"{key}.{name}.path")
    return Requirement(url, version, path)


def _versions(parameters: JsonObject) -> JsonObject:
    return {**_mapping(parameters, "component_versions"), **_mapping(parameters, "components")}


def _has_url(entry: Any) -> bool:
    return isinstance(entry, dict) and bool(entry.get("url"))


def _mapping(parameters: JsonObject, key: str) -> JsonObject:
    value = parameters.get(key)
    return value if isinstance(value, dict) else {}


def _check_name(kind: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise _invalid(f"{name[:100]!r} is no name of {'an' if kind == 'instance' else 'a'} {kind}")


def _components(names: Iterable[str]) -> str:
    listed: Sequence[str] = [f"'{name}'" for name in sorted(names)]
    return f"component{'s' if len(listed) > 1 else ''} {', '.join(listed)}"


def _invalid(message: str, *, parameter: str = "applications", remedy: str = "") -> CatalogError:
    return CatalogError("invalid", message, where=Where(parameter=parameter), remedy=remedy)
