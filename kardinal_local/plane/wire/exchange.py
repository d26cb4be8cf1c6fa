"""One request and its answer, as the handlers pass it along."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from aiohttp import web

from kardinal_local.plane.audit import LoggedRequest, RequestLog
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.security import ANONYMOUS, Attributes
from kardinal_local.plane.wire.negotiation import Representation
from kardinal_local.plane.wire.routes import Target

__all__ = ["JSON_HEADERS", "Exchange", "json_response", "manager_of"]

JSON_HEADERS = {"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
_MANAGER_LENGTH = 128
_AREAS = frozenset({"version", "api", "apis", "openapi", "healthz", "livez", "readyz"})
_NOTHING = Attributes("")


class Exchange:
    """What becomes known of a request on its way; it is logged once, by the first answer.

    `warnings` go with the answer whatever it will be: kubectl prints them.
    """

    def __init__(self, request: web.BaseRequest, *, log: RequestLog) -> None:
        self.request = request
        self.query: Mapping[str, str] = request.query
        self.user = ANONYMOUS
        self.asked = _NOTHING
        self.verb = ""
        self.target: Target | None = None
        self.representation = Representation()
        self.warnings: list[str] = []
        self._log: RequestLog | None = log

    def record(self, code: int) -> None:
        if self._log is None:
            return
        log, self._log = self._log, None
        target = self.target
        log.record(
            LoggedRequest(
                user=self.user.name,
                verb=self.verb,
                resource=_area(self.request.path) if target is None else target.kind.qualified,
                subresource="" if target is None else target.subresource,
                namespace="" if target is None else target.namespace,
                name="" if target is None else target.name,
                code=code,
            )
        )


def manager_of(exchange: Exchange) -> str:
    """Who is said to write: what the request says, or the program that sent it."""
    agent = exchange.request.headers.get("User-Agent", "").partition("/")[0]
    return (exchange.query.get("fieldManager") or agent or "unknown")[:_MANAGER_LENGTH]


def _area(path: str) -> str:
    """What a request that was for no resource was about; made-up paths are all alike, or the log could be filled."""
    area = path.split("/", 2)[1] if path.startswith("/") else ""
    return f"/{area}" if area in _AREAS else ""


def json_response(
    document: JsonObject | bytes, *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """An answer in JSON."""
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return web.Response(body=body, status=status, headers={**JSON_HEADERS, **(headers or {})})
