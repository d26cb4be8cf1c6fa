"""Everything that is not a resource: versions, groups, OpenAPI documents.

OpenAPI documents are made once per state of the registry. Their address carries a digest of their content, which is
how kubectl knows that the copy it keeps on disk is still right.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import orjson
from aiohttp import web

from kardinal.localplane.documents import JsonObject
from kardinal.localplane.handlers import discovery
from kardinal.localplane.handlers.openapi import document
from kardinal.localplane.kinds import Kind, Registry
from kardinal.localplane.wire import accepts_aggregated_discovery, json_response, unknown_path

__all__ = ["Information"]

# kubectl up to 1.28 does not recognise the spelling with "@v1.0".
_OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@dataclass(frozen=True, slots=True)
class _Document:
    """One OpenAPI document, and the kinds it was made from."""

    kinds: tuple[Kind, ...]
    body: bytes
    digest: str


class Information:
    """Answers about the server itself."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._documents: dict[str, _Document] = {}
        self._documents_revision = -1

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """None when the path speaks of a resource."""
        parts = request.path.strip("/").split("/")
        match parts:
            case ["version"]:
                return json_response(dict(discovery.VERSION))
            case ["openapi", "v2"]:
                return web.Response(body=b"", content_type=_OPENAPI_V2)
            case ["openapi", "v3", *rest]:
                return self._openapi("/".join(rest))
            case ["api"]:
                return self._groups(request, core=True)
            case ["apis"]:
                return self._groups(request, core=False)
            case ["api", version]:
                return _found(discovery.resource_list(self._registry, "", version))
            case ["apis", group]:
                return _found(discovery.group(self._registry, group))
            case ["apis", group, version]:
                return _found(discovery.resource_list(self._registry, group, version))
        return None

    def _groups(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        if accepts_aggregated_discovery(request.headers.get("Accept", "")):
            body = orjson.dumps(discovery.aggregated(self._registry, core=core))
            return web.Response(body=body, headers={"Content-Type": _AGGREGATED})
        if core:
            return json_response(discovery.core_versions(request.host))
        return json_response(discovery.group_list(self._registry))

    def _openapi(self, path: str) -> web.Response:
        documents = self._current_documents()
        if not path:
            paths = {
                name: {"serverRelativeURL": f"/openapi/v3/{name}?hash={found.digest}"}
                for name, found in documents.items()
            }
            return json_response({"paths": paths})
        if path not in documents:
            raise unknown_path()
        return json_response(documents[path].body)

    def _current_documents(self) -> dict[str, _Document]:
        if self._documents_revision != self._registry.revision:
            before, self._documents = self._documents, {}
            for group, versions in self._registry.groups().items():
                for version, kinds in versions.items():
                    path = f"apis/{group}/{version}" if group else f"api/{version}"
                    old = before.get(path)
                    is_current = old is not None and list(map(id, old.kinds)) == list(map(id, kinds))
                    self._documents[path] = old if old and is_current else _describe(group, version, kinds)
            self._documents_revision = self._registry.revision
        return self._documents


def _describe(group: str, version: str, kinds: list[Kind]) -> _Document:
    body = orjson.dumps(document(group, version, kinds))
    return _Document(tuple(kinds), body, hashlib.sha256(body).hexdigest())


def _found(found: JsonObject | None) -> web.Response:
    if found is None:
        raise unknown_path()
    return json_response(found)
