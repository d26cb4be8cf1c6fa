"""Answer requests for what is not a resource: versions, groups, OpenAPI documents.

Documents are made once per state of the registry. Clients keep them on disk: an aggregated discovery document is asked
for by its ETag, an OpenAPI document by an address that carries a digest of its content, so an old address leads to the
new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import orjson
from aiohttp import web

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.handlers import discovery
from kardinal_local.plane.handlers.openapi import document
from kardinal_local.plane.kinds import Kind, Registry
from kardinal_local.plane.wire import accepts_aggregated_discovery, json_response

__all__ = ["Information"]

# kubectl up to 1.28 does not recognise the spelling with "@v1.0".
_OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_REVALIDATED = "no-cache, private"
_KEPT_FOR_EVER = "public, immutable"


@dataclass(frozen=True, slots=True)
class _Document:
    """One document, its digest, and the kinds it was made from."""

    body: bytes
    digest: str
    kinds: tuple[Kind, ...] = ()

    @classmethod
    def of(cls, content: JsonObject, kinds: tuple[Kind, ...] = ()) -> _Document:
        body = orjson.dumps(content)
        return cls(body, hashlib.sha512(body).hexdigest().upper(), kinds)


class Information:
    """Answers about the server itself."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._aggregated: dict[bool, _Document] = {}
        self._aggregated_revision = -1
        self._openapi_documents: dict[str, _Document] = {}
        self._openapi_revision = -1

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """None when the path speaks of a resource, or of nothing that this server knows."""
        parts = request.path.strip("/").split("/")
        found: JsonObject | None = None
        match parts:
            case ["version"]:
                found = dict(discovery.VERSION)
            case ["openapi", "v2"]:
                return web.Response(body=b"", content_type=_OPENAPI_V2)
            case ["openapi", "v3", *rest]:
                return self._openapi(request, "/".join(rest))
            case ["api"]:
                return self._groups(request, core=True)
            case ["apis"]:
                return self._groups(request, core=False)
            case ["api", version]:
                found = discovery.resource_list(self._registry, "", version)
            case ["apis", group]:
                found = discovery.group(self._registry, group)
            case ["apis", group, version]:
                found = discovery.resource_list(self._registry, group, version)
        return None if found is None else json_response(found)

    def _groups(self, request: web.BaseRequest, *, core: bool) -> web.Response:
        if accepts_aggregated_discovery(request.headers.get("Accept", "")):
            headers = {"Content-Type": _AGGREGATED, "Cache-Control": "public"}
            return _revalidated(request, self._current_aggregated(core=core), headers)
        if core:
            return json_response(discovery.core_versions(request.host))
        return json_response(discovery.group_list(self._registry))

    def _openapi(self, request: web.BaseRequest, path: str) -> web.Response:
        documents = self._current_openapi()
        if not path:
            paths = {name: {"serverRelativeURL": _address(name, found)} for name, found in documents.items()}
            return json_response({"paths": paths}, headers={"Content-Type": "text/plain; charset=utf-8"})
        found = documents.get(path)
        if found is None:
            return web.Response(status=404)
        digest = request.query.get("hash")
        headers = {"Content-Type": "application/json", "Cache-Control": _REVALIDATED}
        if digest and digest != found.digest:
            return _with_digest(web.Response(status=301, headers={**headers, "Location": _address(path, found)}), found)
        if digest:
            headers["Cache-Control"] = _KEPT_FOR_EVER
        return _revalidated(request, found, headers)

    def _current_aggregated(self, *, core: bool) -> _Document:
        if self._aggregated_revision != self._registry.revision:
            made = {one: _Document.of(discovery.aggregated(self._registry, core=one)) for one in (True, False)}
            self._aggregated, self._aggregated_revision = made, self._registry.revision
        return self._aggregated[core]

    def _current_openapi(self) -> dict[str, _Document]:
        if self._openapi_revision != self._registry.revision:
            before, self._openapi_documents = self._openapi_documents, {}
            for group, versions in self._registry.groups().items():
                for version, kinds in versions.items():
                    path = f"apis/{group}/{version}" if group else f"api/{version}"
                    old = before.get(path)
                    # A kind is replaced and never changed, so the same kinds make the same document.
                    if old is None or list(map(id, old.kinds)) != list(map(id, kinds)):
                        old = _Document.of(document(group, version, kinds), tuple(kinds))
                    self._openapi_documents[path] = old
            self._openapi_revision = self._registry.revision
        return self._openapi_documents


def _address(path: str, found: _Document) -> str:
    return f"/openapi/v3/{path}?hash={found.digest}"


def _revalidated(request: web.BaseRequest, found: _Document, headers: Mapping[str, str]) -> web.Response:
    """The document, or that the client has it already."""
    seen = [tag.strip() for tag in request.headers.get("If-None-Match", "").split(",")]
    if f'"{found.digest}"' in seen:
        kept = {key: value for key, value in headers.items() if key != "Content-Type"}
        return _with_digest(web.Response(status=304, headers=kept), found)
    return _with_digest(web.Response(body=found.body, headers=headers), found)


def _with_digest(response: web.Response, found: _Document) -> web.Response:
    response.headers["ETag"] = f'"{found.digest}"'
    response.headers["Vary"] = "Accept"
    return response
