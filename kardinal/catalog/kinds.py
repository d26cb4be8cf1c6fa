"""CatalogTenant and CatalogCluster: what the catalogs of clusters are compiled for.

Both are data: no controller acts on them. They are read when a Bundle is promoted to an environment with the strategy
`catalog`, and from files by `kardinal catalog`. What one of them names is in its own namespace.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, JsonValue

from kardinal.models.base import DnsLabel, Model, Name, RelativePath, Resource, SecretReference, ShortText, Url
from kardinal.objects import ResourceType

__all__ = [
    "CATALOG_CLUSTER",
    "CATALOG_TENANT",
    "FACTS_LIMIT",
    "REQUIRED_FACTS",
    "CatalogCluster",
    "CatalogClusterSpec",
    "CatalogLocation",
    "CatalogRepository",
    "CatalogTenant",
    "CatalogTenantSpec",
]

CATALOG_CLUSTER = ResourceType("kardinal.io", "v1alpha1", "CatalogCluster", "catalogclusters")
CATALOG_TENANT = ResourceType("kardinal.io", "v1alpha1", "CatalogTenant", "catalogtenants")

FACTS_LIMIT = 4_096
"""The most characters of all facts of a cluster, names and values together."""

REQUIRED_FACTS = ("distribution", "cloud")

_LIST = Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})


def _fact_rule(name: str) -> dict[str, JsonValue]:
    return {
        "rule": f"'{name}' in self.facts && self.facts['{name}'] != ''",
        "message": f"the fact {name} is required, and empty or absent",
        "fieldPath": ".facts",
    }


_RULES: list[JsonValue] = [
    *map(_fact_rule, REQUIRED_FACTS),
    {
        "rule": f"self.facts.map(name, size(name) + size(self.facts[name])).sum() <= {FACTS_LIMIT}",
        "message": f"has more than {FACTS_LIMIT:,} characters in its names and values",
        "fieldPath": ".facts",
    },
]

FactName = Annotated[str, Field(min_length=1, max_length=64)]
FactValue = Annotated[str, Field(max_length=512)]


def _dynamic_facts() -> dict[str, Any]:
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "maxProperties": 64}


class CatalogRepository(Model):
    """A Git repository with configuration."""

    url: Url
    """URL of the repository."""
    revision: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """Branch, tag or commit. Defaults to the default branch of the repository."""
    secret_ref: SecretReference | None = None
    """Secret with the credential for the repository. Defaults to the one of `secretRefs` that names its host."""


class CatalogLocation(Model):
    """The place of a catalog."""

    url: Url
    """URL of the repository."""
    branch: Annotated[str, Field(min_length=1, max_length=244)] = "main"
    """Branch of the catalog. Defaults to `main`."""
    path: RelativePath | None = None
    """Directory of the catalog. Defaults to the path of the environment."""
    secret_ref: SecretReference | None = None
    """Secret with the credential for the repository."""


class CatalogTenantSpec(Model):
    display_name: ShortText = ""
    """Name of the tenant for people, which templates see, too."""
    global_: Annotated[CatalogRepository, Field(alias="global")]
    """The repository with the configuration of all tenants, which templates and classes see as `global`."""
    inventory: CatalogRepository
    """The repository with the configuration of this tenant's clusters."""
    component_base_url: Annotated[Url | None, Field(alias="componentBaseURL")] = None
    """The URL in front of the name of a component without an own one: `ssh://git@host/components/`."""
    sources: Annotated[tuple[Url, ...], _LIST] = ()
    """The URLs, by their beginnings, that the configuration may name.

    Defaults to the folders of `global`, `inventory` and `componentBaseURL`.
    """
    secret_refs: Annotated[tuple[Name, ...], _LIST] = ()
    """Secrets with credentials for these URLs, each for the hosts in its annotation `kardinal.io/hosts`."""
    ref_prefixes: Annotated[tuple[Annotated[str, Field(min_length=1, max_length=512)], ...], _LIST] = ()
    """The paths, by their beginnings, that secret references may have, such as `t-acme/`. Defaults to all."""


class CatalogTenant(Resource):
    """The configuration that the clusters of one tenant share: its repositories, and the limits of what they name."""

    resource: ClassVar[ResourceType] = CATALOG_TENANT

    spec: CatalogTenantSpec
    """The repositories of the tenant."""


class CatalogClusterSpec(Model):
    model_config = ConfigDict(json_schema_extra={"x-kubernetes-validations": _RULES})

    display_name: ShortText = ""
    """Name of the cluster for people, which templates see, too."""
    tenant: DnsLabel
    """Name of the CatalogTenant, in the namespace of this object."""
    facts: Annotated[dict[FactName, FactValue], Field(max_length=64)]
    """The facts about the cluster, which classes and templates see. `distribution` and `cloud` are required."""
    dynamic_facts: Annotated[dict[str, JsonValue], Field(json_schema_extra=_dynamic_facts())] = Field(
        default_factory=dict
    )
    """Facts that change while the cluster runs, of any shape, such as the versions of its nodes."""
    global_: Annotated[CatalogRepository | None, Field(alias="global")] = None
    """Replaces `global` of the tenant."""
    inventory: CatalogRepository | None = None
    """Replaces `inventory` of the tenant."""
    catalog: CatalogLocation | None = None
    """The place of the catalog. Defaults to the repository of the Pipeline and the path of the environment."""


class CatalogCluster(Resource):
    """A cluster whose catalog is compiled: its tenant and its facts."""

    resource: ClassVar[ResourceType] = CATALOG_CLUSTER

    spec: CatalogClusterSpec
    """The tenant and the facts."""
