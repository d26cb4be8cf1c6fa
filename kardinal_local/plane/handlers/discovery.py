"""Make the discovery documents: /version, /api, /apis, and the aggregated form of the latter two.

Every document is made from the registry on demand; they are small, and clients cache them.
"""

from __future__ import annotations

import base64
import hashlib

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import Kind, Registry

__all__ = [
    "VERSION",
    "aggregated",
    "core_versions",
    "group",
    "group_list",
    "resource_list",
]

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3+kardinal",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}
# Two kinds are stored under another name than the one they are served by.
_STORED_ELSEWHERE = {
    "events.events.k8s.io": "/v1/Event",
    "customresourcedefinitions.apiextensions.k8s.io": "apiextensions.k8s.io/v1beta1/CustomResourceDefinition",
}


def core_versions(address: str) -> JsonObject:
    """GET /api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def group_list(registry: Registry) -> JsonObject:
    """GET /apis."""
    groups = [_group(name, list(versions)) for name, versions in registry.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(registry: Registry, name: str) -> JsonObject | None:
    """GET /apis/GROUP."""
    versions = registry.groups().get(name)
    return None if versions is None else {"kind": "APIGroup", "apiVersion": "v1"} | _group(name, list(versions))


def resource_list(registry: Registry, name: str, version: str) -> JsonObject | None:
    """GET /api/v1 or /apis/GROUP/VERSION."""
    kinds = registry.groups().get(name, {}).get(version)
    if kinds is None:
        return None
    resources = [entry for kind in kinds for entry in _entries(kind)]
    api_version = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(registry: Registry, *, core: bool) -> JsonObject:
    """GET /api or /apis as APIGroupDiscoveryList: everything in one answer."""
    items = [
        {
            "metadata": {"name": name} if name else {},
            "versions": [
                {
                    "version": version,
                    "freshness": "Current",
                    "resources": [_aggregated_resource(kind) for kind in kinds],
                }
                for version, kinds in versions.items()
            ],
        }
        for name, versions in registry.groups().items()
        if (name == "") == core
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _entries(kind: Kind) -> list[JsonObject]:
    """A resource and what hangs below it, as a list of resources has them."""
    resource: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
        **_extras(kind),
    }
    if kind.stored:
        resource["storageVersionHash"] = _storage_version_hash(kind)
    below = [
        {
            "name": f"{kind.plural}/{one.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": one.kind or kind.kind,
            "verbs": list(one.verbs),
            **({"group": one.group, "version": one.version} if one.kind else {}),
        }
        for one in kind.subresources
    ]
    return [resource, *below]


def _aggregated_resource(kind: Kind) -> JsonObject:
    # Built-in kinds leave the group and version of what they are to their place in the document.
    own = (kind.group, kind.version) if kind.custom else ("", "")
    resource: JsonObject = {
        "resource": kind.plural,
        "responseKind": _response_kind(*own, kind.kind),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        **_extras(kind),
    }
    if kind.subresources:
        resource["subresources"] = [
            {
                "subresource": one.name,
                "responseKind": _response_kind(one.group, one.version, one.kind)
                if one.kind
                else _response_kind(*own, kind.kind),
                "verbs": list(one.verbs),
            }
            for one in kind.subresources
        ]
    return resource


def _extras(kind: Kind) -> JsonObject:
    extras = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    return {key: value for key, value in extras.items() if value}


def _response_kind(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}


def _group(name: str, versions: list[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _storage_version_hash(kind: Kind) -> str:
    """What tells a client that the version of stored objects has changed."""
    stored = _STORED_ELSEWHERE.get(kind.qualified, f"{kind.group}/{kind.storage_version}/{kind.kind}")
    return base64.b64encode(hashlib.sha256(stored.encode()).digest()[:8]).decode()
