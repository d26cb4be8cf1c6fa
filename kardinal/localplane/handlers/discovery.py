"""How clients find out what is served: /version, /api, /apis, and the same as one aggregated document.

Every document is made from the registry on demand; they are small, and clients cache them.
"""

from __future__ import annotations

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.kinds import Kind, Registry

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
_ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = ["get", "patch", "update"]


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
    resources = []
    for kind in kinds:
        resource: JsonObject = {
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": _verbs(kind),
        }
        if kind.short_names:
            resource["shortNames"] = list(kind.short_names)
        if kind.categories:
            resource["categories"] = list(kind.categories)
        resources.append(resource)
        if kind.status:
            resources.append(
                {
                    "name": f"{kind.plural}/status",
                    "singularName": "",
                    "namespaced": kind.namespaced,
                    "kind": kind.kind,
                    "verbs": _SUBRESOURCE_VERBS,
                }
            )
    api_version = f"{name}/{version}" if name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def aggregated(registry: Registry, *, core: bool) -> JsonObject:
    """GET /api or /apis as APIGroupDiscoveryList: everything in one answer."""
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
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


def _aggregated_resource(kind: Kind) -> JsonObject:
    response_kind = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    resource: JsonObject = {
        "resource": kind.plural,
        "responseKind": response_kind,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": _verbs(kind),
    }
    if kind.short_names:
        resource["shortNames"] = list(kind.short_names)
    if kind.categories:
        resource["categories"] = list(kind.categories)
    if kind.status:
        resource["subresources"] = [
            {"subresource": "status", "responseKind": response_kind, "verbs": _SUBRESOURCE_VERBS}
        ]
    return resource


def _group(name: str, versions: list[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _verbs(kind: Kind) -> list[str]:
    return _ALL_VERBS if kind.stored else ["create"]
