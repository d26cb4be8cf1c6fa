"""The documents CatalogTenant and CatalogCluster, and the class in which a cluster's facts enter the hierarchy.

The documents are the files of `kardinal catalog compile -f`, and resources of the same kinds in a cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Cluster, ConfigRepository, Tenant
from kardinal.objects import JsonObject
from kardinal.objects.suggestions import nearest

__all__ = ["CLUSTER", "TENANT", "cluster_class", "find_cluster", "read_inventory"]

CLUSTER = "CatalogCluster"
TENANT = "CatalogTenant"
_API_VERSION = "kardinal.io/v1alpha1"
_REQUIRED_FACTS = ("distribution", "cloud")
_FACTS_LIMIT = 4 << 10
"""The most bytes of a cluster's facts as JSON, because the Graph of a Pipeline carries them."""
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_RESERVED = ("components", "defaults", "global", "params")

_TENANT_FIELDS = (
    "displayName",
    "global",
    "inventory",
    "componentBaseURL",
    "sources",
    "secretRefs",
    "refPrefixes",
)
_CLUSTER_FIELDS = ("displayName", "tenant", "facts", "dynamicFacts", "global", "inventory", "catalog")
_REPOSITORY_FIELDS = ("url", "revision", "secretRef")


def read_inventory(documents: Iterable[JsonObject]) -> dict[str, Cluster]:
    """Return the clusters of these documents by name. Raises `CatalogError` for a document that is wrong."""
    tenants: dict[str, Tenant] = {}
    clusters: dict[str, _Document] = {}
    for body in documents:
        document = _Document.read(body)
        known: Mapping[str, object] = tenants if document.kind == TENANT else clusters
        if document.name in known:
            raise document.error("there are two documents of this name")
        if document.kind == TENANT:
            tenants[document.name] = _tenant(document)
        else:
            clusters[document.name] = document
    return {name: _cluster(document, tenants) for name, document in sorted(clusters.items())}


def find_cluster(clusters: Mapping[str, Cluster], name: str) -> Cluster:
    """Return a cluster by name; the error for an unknown one suggests the nearest."""
    if name in clusters:
        return clusters[name]
    near = nearest(name, clusters)
    remedy = f"Did you mean {near}?" if near else f"There are: {', '.join(clusters) or 'none'}"
    raise CatalogError("invalid", f"there is no cluster {name} in these documents", remedy=remedy)


def cluster_class(cluster: Cluster, components: Mapping[str, JsonObject]) -> bytes:
    """Return the class `params.cluster`; `components` are URLs of components that any other class overrides."""
    tenant = cluster.tenant
    parameters: JsonObject = {
        "cluster": {
            "name": cluster.name,
            "display_name": cluster.display_name,
            "catalog_url": cluster.catalog_url,
            "tenant": tenant.name,
            "tenant_display_name": tenant.display_name,
        },
        "facts": dict(cluster.facts),
        "dynamic_facts": cluster.dynamic_facts,
    }
    if components:
        parameters["components"] = dict(components)
    # JSON is YAML, and leaves no string for YAML to take for something else.
    return json.dumps({"parameters": parameters}, ensure_ascii=False, sort_keys=True).encode()


class _Document:
    """A document while it is read, for errors with its name and the path of a field."""

    def __init__(self, kind: str, name: str, spec: JsonObject) -> None:
        self.kind = kind
        self.name = name
        self.spec = spec

    @classmethod
    def read(cls, body: JsonObject) -> _Document:
        kind = str(body.get("kind") or "")
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        document = cls(kind, str(name or ""), {})
        if body.get("apiVersion") != _API_VERSION or kind not in (TENANT, CLUSTER):
            raise document.error(f"is neither {TENANT} nor {CLUSTER} of {_API_VERSION}")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise document.error("needs a name of a-z, 0-9 and -, of at most 63 characters", field="metadata.name")
        spec = body.get("spec")
        if not isinstance(spec, dict):
            raise document.error("has no spec", field="spec")
        document.spec = spec
        document.check_fields(spec, "spec", _TENANT_FIELDS if kind == TENANT else _CLUSTER_FIELDS)
        return document

    def error(self, message: str, *, field: str = "", remedy: str = "") -> CatalogError:
        place = " ".join(part for part in (self.kind, self.name, field) if part) or "a document"
        return CatalogError("invalid", message, where=Where(file=place), remedy=remedy)

    def check_fields(self, found: Mapping[str, Any], path: str, known: tuple[str, ...]) -> None:
        for field in found:
            if field not in known:
                near = nearest(str(field), known)
                remedy = f"Did you mean {near}?" if near else f"There are: {', '.join(known)}"
                raise self.error("is no field", field=f"{path}.{field}", remedy=remedy)

    def text(self, field: str, *, required: bool = False) -> str:
        value = self.spec.get(field)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value):
            raise self.error("has to be a string", field=f"spec.{field}")
        return value

    def texts(self, field: str) -> tuple[str, ...]:
        value = self.spec.get(field)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise self.error("has to be a list of strings", field=f"spec.{field}")
        return tuple(value)

    def repository(self, field: str) -> ConfigRepository | None:
        value = self.spec.get(field)
        if value is None:
            return None
        path = f"spec.{field}"
        if not isinstance(value, dict):
            raise self.error("has to be an object with a url", field=path)
        self.check_fields(value, path, _REPOSITORY_FIELDS)
        url = value.get("url")
        revision = value.get("revision") or ""
        if not isinstance(url, str) or not url:
            raise self.error("is required", field=f"{path}.url")
        if not isinstance(revision, str):
            raise self.error("has to be a string", field=f"{path}.revision")
        return ConfigRepository(url, revision)


def _tenant(document: _Document) -> Tenant:
    global_ = document.repository("global")
    inventory = document.repository("inventory")
    if document.name in _RESERVED:
        raise document.error("the classes of Commodore have this name", remedy="Name it t-…, for example")
    if global_ is None or inventory is None:
        raise document.error("is required", field=f"spec.{'inventory' if global_ else 'global'}")
    return Tenant(
        name=document.name,
        display_name=document.text("displayName"),
        global_=global_,
        inventory=inventory,
        component_base_url=document.text("componentBaseURL"),
        sources=document.texts("sources"),
        ref_prefixes=document.texts("refPrefixes"),
    )


def _cluster(document: _Document, tenants: Mapping[str, Tenant]) -> Cluster:
    name = document.text("tenant", required=True)
    tenant = tenants.get(name)
    if tenant is None:
        near = nearest(name, tenants)
        raise document.error(
            f"there is no {TENANT} {name}", field="spec.tenant", remedy=f"Did you mean {near}?" if near else ""
        )
    catalog = document.spec.get("catalog")
    url = catalog.get("url") if isinstance(catalog, dict) else None
    return Cluster(
        name=document.name,
        display_name=document.text("displayName"),
        tenant=tenant,
        facts=_facts(document),
        dynamic_facts=_dynamic_facts(document),
        global_=document.repository("global"),
        inventory=document.repository("inventory"),
        catalog_url=url if isinstance(url, str) else "",
    )


def _facts(document: _Document) -> Mapping[str, str]:
    facts = document.spec.get("facts")
    if not isinstance(facts, dict):
        facts = {}
    for fact, value in facts.items():
        if not isinstance(value, str):
            raise document.error("has to be a string: put it in quotes", field=f"spec.facts.{fact}")
    for fact in _REQUIRED_FACTS:
        if not facts.get(fact):
            raise document.error("this fact is required", field=f"spec.facts.{fact}")
    _check_size(document, facts, "spec.facts")
    return facts


def _dynamic_facts(document: _Document) -> JsonObject:
    facts = document.spec.get("dynamicFacts")
    if facts is None:
        return {}
    if not isinstance(facts, dict):
        raise document.error("has to be an object", field="spec.dynamicFacts")
    _check_size(document, facts, "spec.dynamicFacts")
    return facts


def _check_size(document: _Document, facts: JsonObject, field: str) -> None:
    try:
        size = len(json.dumps(facts, ensure_ascii=False).encode())
    except (TypeError, ValueError):
        raise document.error("has a value that JSON does not have", field=field, remedy="Put it in quotes") from None
    if size > _FACTS_LIMIT:
        raise document.error(f"has {size:,} bytes; there may be {_FACTS_LIMIT:,}", field=field)
