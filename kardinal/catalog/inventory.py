"""The clusters of the documents CatalogTenant and CatalogCluster, and the class in which facts enter the hierarchy.

The documents are the files of `kardinal catalog compile -f`, and resources of the same kinds in a cluster.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.kinds import (
    CATALOG_CLUSTER,
    CATALOG_TENANT,
    FACTS_LIMIT,
    REQUIRED_FACTS,
    CatalogCluster,
    CatalogRepository,
    CatalogTenant,
)
from kardinal.catalog.values import Cluster, ConfigRepository, Tenant
from kardinal.models.base import DNS_LABEL_PATTERN, Resource
from kardinal.models.unknown_fields import unknown_fields
from kardinal.objects import JsonObject
from kardinal.objects.suggestions import nearest

__all__ = ["cluster_class", "cluster_of", "find_cluster", "read_inventory"]

R = TypeVar("R", bound=Resource)

_RESERVED = ("components", "defaults", "global", "params")


def read_inventory(documents: Iterable[JsonObject]) -> dict[str, Cluster]:
    """Return the clusters of these documents by name. Raises `CatalogError` for a document that is wrong."""
    tenants: dict[str, CatalogTenant] = {}
    clusters: dict[str, CatalogCluster] = {}
    for body in documents:
        kind = body.get("apiVersion"), body.get("kind")
        if kind == (CATALOG_TENANT.api_version, CATALOG_TENANT.kind):
            _add(tenants, _validated(CatalogTenant, body))
        elif kind == (CATALOG_CLUSTER.api_version, CATALOG_CLUSTER.kind):
            _add(clusters, _validated(CatalogCluster, body))
        else:
            message = f"is neither {CATALOG_TENANT.kind} nor {CATALOG_CLUSTER.kind} of {CATALOG_TENANT.api_version}"
            raise CatalogError("invalid", message, where=Where(file=str(body.get("kind") or "a document")))
    return {name: cluster_of(clusters[name], tenants) for name in sorted(clusters)}


def cluster_of(cluster: CatalogCluster, tenants: Mapping[str, CatalogTenant]) -> Cluster:
    """Return a cluster with its tenant, which is one of `tenants`. Raises `CatalogError`."""
    spec = cluster.spec
    if spec.tenant not in tenants:
        near = nearest(spec.tenant, tenants)
        remedy = f"Did you mean {near}?" if near else ""
        raise _error(cluster, "spec.tenant", f"there is no {CATALOG_TENANT.kind} {spec.tenant}", remedy=remedy)
    for fact in REQUIRED_FACTS:
        if not spec.facts.get(fact):
            raise _error(cluster, f"spec.facts.{fact}", "this fact is required")
    _check_size(cluster, spec.facts, "spec.facts")
    _check_size(cluster, spec.dynamic_facts, "spec.dynamicFacts")
    return Cluster(
        name=cluster.metadata.name,
        display_name=spec.display_name,
        tenant=_tenant(tenants[spec.tenant]),
        facts=spec.facts,
        dynamic_facts=spec.dynamic_facts,
        global_=_repository(spec.global_) if spec.global_ else None,
        inventory=_repository(spec.inventory) if spec.inventory else None,
        catalog_url=spec.catalog.url if spec.catalog else "",
    )


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


def _add(known: dict[str, R], found: R) -> None:
    if known.setdefault(found.metadata.name, found) is not found:
        raise _error(found, "", "there are two documents of this name")


def _validated(model: type[R], body: JsonObject) -> R:
    """Return a document as a model. Raises `CatalogError` with the path of the field."""
    metadata = body.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else ""
    subject = f"{model.resource.kind} {name or 'without a name'}"
    for unknown in unknown_fields(model, {"spec": body.get("spec")}):
        remedy = unknown.remedy[:1].upper() + unknown.remedy[1:]
        raise CatalogError("invalid", "unknown field", where=Where(file=f"{subject} {unknown.field}"), remedy=remedy)
    try:
        resource = model.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise CatalogError("invalid", str(first["msg"]), where=Where(file=f"{subject} {place}")) from None
    if len(resource.metadata.name) > 63 or not re.fullmatch(DNS_LABEL_PATTERN, resource.metadata.name):
        message = "has to be of a-z, 0-9 and -, of at most 63 characters: it becomes the name of classes"
        raise CatalogError("invalid", message, where=Where(file=f"{subject} metadata.name"))
    return resource


def _tenant(tenant: CatalogTenant) -> Tenant:
    if tenant.metadata.name in _RESERVED:
        message = "the classes of every catalog have this name"
        raise _error(tenant, "metadata.name", message, remedy="Name it t-…, for example")
    spec = tenant.spec
    return Tenant(
        name=tenant.metadata.name,
        display_name=spec.display_name,
        global_=_repository(spec.global_),
        inventory=_repository(spec.inventory),
        component_base_url=spec.component_base_url or "",
        sources=spec.sources,
        ref_prefixes=spec.ref_prefixes,
    )


def _repository(found: CatalogRepository) -> ConfigRepository:
    return ConfigRepository(found.url, found.revision or "")


def _check_size(cluster: CatalogCluster, facts: Mapping[str, Any], field: str) -> None:
    try:
        size = len(json.dumps(facts, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):
        raise _error(cluster, field, "has a value that JSON does not have", remedy="Put it in quotes") from None
    if size > FACTS_LIMIT:
        raise _error(cluster, field, f"has {size:,} bytes; there may be {FACTS_LIMIT:,}")


def _error(resource: Resource, field: str, message: str, *, remedy: str = "") -> CatalogError:
    place = " ".join(part for part in (resource.resource.kind, resource.metadata.name, field) if part)
    return CatalogError("invalid", message, where=Where(file=place), remedy=remedy)
