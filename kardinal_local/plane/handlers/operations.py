"""Make the paths of an OpenAPI document: the operations of a kind, and the parameters of each.

kubectl asks three things of them: whether PATCH takes `fieldValidation` and `dryRun`, and which patch types there are.
Generated clients read the rest, so it is that of the real server.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.kinds import Kind

__all__ = ["operations"]

_LISTING: Final = (
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
)
_WRITING: Final = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_PARAMETERS: Final = {
    "list": _LISTING,
    "deletecollection": _LISTING,
    "get": (("resourceVersion", "string"),),
    "post": _WRITING,
    "put": _WRITING,
    "patch": (*_WRITING, ("force", "boolean")),
    "delete": (
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ),
}
_PRETTY: Final = ("pretty", "string")
_DOCUMENTS: Final = ("application/json", "application/yaml")
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_METHODS: Final = {"list": "get", "deletecollection": "delete"}


def operations(kind: Kind, *, schema: str, meta: str) -> Iterator[tuple[str, JsonObject]]:
    """Paths and their operations; `schema` is the name of the kind's schema, `meta` the prefix of shared ones."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    inside = ("namespace",) if kind.namespaced else ()

    def item(*actions: str, names: Sequence[str]) -> JsonObject:
        made = {_METHODS.get(one, one): _operation(kind, one, schema=schema, meta=meta) for one in actions}
        return made | {"parameters": [*map(_in_path, names), _in_query(*_PRETTY)]}

    if not kind.stored:
        yield collection, item("post", names=inside)
        return
    if kind.namespaced:
        everywhere = _operation(kind, "list", schema=schema, meta=meta) | {"parameters": []}
        shared = sorted((*_LISTING, _PRETTY))
        yield f"{root}/{kind.plural}", {"get": everywhere, "parameters": [_in_query(*one) for one in shared]}
    deletes_all = ("deletecollection",) if "deletecollection" in kind.verbs else ()
    yield collection, item("list", "post", *deletes_all, names=inside)
    yield f"{collection}/{{name}}", item("get", "put", "patch", "delete", names=("name", *inside))
    if kind.status:
        yield f"{collection}/{{name}}/status", item("get", "put", "patch", names=("name", *inside))


def _operation(kind: Kind, action: str, *, schema: str, meta: str) -> JsonObject:
    answer = f"{schema}List" if action == "list" else schema
    if action in ("delete", "deletecollection") and not kind.returns_deleted:
        answer = f"{meta}Status"
    operation: JsonObject = {
        "parameters": [_in_query(*one) for one in _PARAMETERS[action]],
        "responses": {"200": {"description": "OK", "content": _content(_DOCUMENTS, answer)}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    }
    if action in ("post", "put"):
        operation["requestBody"] = {"required": True, "content": _content(_DOCUMENTS, schema)}
    if action == "patch":
        types = _PATCHES if kind.custom else (*_PATCHES, _STRATEGIC)
        operation["requestBody"] = {"required": True, "content": _content(types, f"{meta}Patch")}
    if action == "delete":
        operation["requestBody"] = {"content": _content(_DOCUMENTS, f"{meta}DeleteOptions")}
    return operation


def _in_query(name: str, type_: str) -> JsonObject:
    return {"name": name, "in": "query", "schema": {"type": type_, "uniqueItems": True}}


def _in_path(name: str) -> JsonObject:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}


def _content(types: Sequence[str], name: str) -> JsonObject:
    return {media: {"schema": {"$ref": f"#/components/schemas/{name}"}} for media in types}
