"""Dispatch HTTP requests: authenticate, authorize, route, and turn errors into `Status` bodies.

The order is authenticate, authorize, route, read the body, then act; everything after the body was read happens without
`await` up to the commit. Who may not ask is told so and nothing else, not even whether there is such a thing. Every
request ends in the log exactly once, also when its client has gone away meanwhile.
"""

from __future__ import annotations

import contextlib
import logging

import orjson
from aiohttp import web

from kardinal_local.plane import statuses
from kardinal_local.plane.audit import RequestLog
from kardinal_local.plane.errors import (
    ApplyConflict,
    LocalPlaneError,
    PatchError,
    StatusError,
    UnsupportedProtobuf,
)
from kardinal_local.plane.handlers.health import Health
from kardinal_local.plane.handlers.information import Information
from kardinal_local.plane.handlers.questions import Questions
from kardinal_local.plane.handlers.reading import Reading
from kardinal_local.plane.handlers.writing import Writing
from kardinal_local.plane.kinds import Registry
from kardinal_local.plane.security import HEALTH_PATHS, Access, Authentication, impersonate
from kardinal_local.plane.wire import (
    Chaos,
    Disconnected,
    Exchange,
    NoSuchPath,
    Target,
    attributes_of,
    finish,
    negotiate,
    refusal,
    resolve,
    verb_of,
)

__all__ = ["Api"]

CLIENT_GONE = 499
_LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
_log = logging.getLogger(__name__)


class Api:
    """Answers requests; an aiohttp low-level handler."""

    def __init__(
        self,
        *,
        registry: Registry,
        authentication: Authentication,
        access: Access,
        log: RequestLog,
        health: Health,
        information: Information,
        questions: Questions,
        reading: Reading,
        writing: Writing,
        chaos: Chaos | None = None,
    ) -> None:
        self._registry = registry
        self._authentication = authentication
        self._access = access
        self._log = log
        self._health = health
        self._information = information
        self._questions = questions
        self._reading = reading
        self._writing = writing
        self._chaos = chaos

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        exchange = Exchange(request, log=self._log)
        response: web.StreamResponse
        try:
            response = await self._answer(exchange)
        except NoSuchPath:
            response = web.Response(text="404 page not found\n", status=404)
        except Disconnected:
            if request.transport is not None:
                request.transport.abort()
            response = web.Response(status=CLIENT_GONE)
        except LocalPlaneError as error:
            told = _as_status(error)
            exchange.warnings.extend(told.warnings)
            response = refusal(told)
        except ConnectionError:
            # The client left in the middle of an answer.
            response = web.Response(status=CLIENT_GONE)
        except Exception as error:
            response = refusal(_unexpected(error, request))
        exchange.record(response.status)
        return await finish(response, exchange) if isinstance(response, web.Response) else response

    async def _answer(self, exchange: Exchange) -> web.StreamResponse:
        request = exchange.request
        self._require_loopback_name(request)
        accepted = request.headers.get("Accept", "")
        with contextlib.suppress(StatusError):
            # A refusal comes in the encoding that was asked for, if there is one.
            exchange.representation = negotiate(accepted)
        self._authorize(exchange)
        if request.path in HEALTH_PATHS:
            return self._health.answer(request.path)
        if (answer := self._information.answer(request)) is not None:
            if request.method not in {"GET", "HEAD"}:
                raise statuses.method_not_allowed()
            exchange.verb = "get"
            return answer
        target = resolve(request.rel_url.raw_path, self._registry)
        exchange.target = target
        exchange.verb = verb_of(request.method, target, exchange.query)
        listing, watching = exchange.verb == "list", exchange.verb == "watch"
        routed = not target.kind.custom
        exchange.representation = negotiate(accepted, routed=routed, listing=listing, watching=watching)
        exchange.warnings.append(target.kind.deprecation)
        answer_lost = self._chaos is not None and self._chaos.before(exchange, target)
        response = await self._act(exchange, target)
        if answer_lost:
            raise Disconnected
        return response

    async def _act(self, exchange: Exchange, target: Target) -> web.StreamResponse:
        if self._questions.concern(target):
            return await self._questions.answer(exchange, target)
        match exchange.verb:
            case "get":
                return await self._reading.get(exchange, target)
            case "list":
                return await self._reading.list(exchange, target)
            case "watch":
                return await self._reading.watch(exchange, target)
        return await self._writing.answer(exchange, target)

    def _authorize(self, exchange: Exchange) -> None:
        """Who asks, in whose name, and whether they may; `exchange` knows it afterwards."""
        request, path = exchange.request, exchange.request.rel_url.raw_path
        exchange.user = self._authentication.of_request(
            request.headers.get("Authorization", ""), path=path, warn=exchange.warnings.append
        )
        exchange.asked = attributes_of(request.method, path, exchange.query)
        exchange.user = impersonate(exchange.user, request.headers.items(), exchange.asked, access=self._access)
        self._access.require(exchange.user, exchange.asked)

    def _require_loopback_name(self, request: web.BaseRequest) -> None:
        """Refuse names a web page could have made its browser resolve to this machine (DNS rebinding)."""
        host = request.headers.get("Host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name.lower() not in _LOOPBACK_NAMES:
            raise StatusError(403, "Forbidden", "this server answers to 127.0.0.1 and localhost only")


def _unexpected(error: Exception, request: web.BaseRequest) -> StatusError:
    """Return the answer to an unexpected error: too deep an object, or 500 with a line in the log."""
    if isinstance(error, RecursionError) or (isinstance(error, orjson.JSONEncodeError) and "ecursion" in str(error)):
        return statuses.too_deep()
    _log.exception("request failed: %s %s", request.method, request.path)
    return StatusError(500, "InternalError", "Internal error occurred: see the server's log")


def _as_status(error: LocalPlaneError) -> StatusError:
    """What the rooms behind HTTP raise, as the answer to a request."""
    match error:
        case StatusError():
            return error
        case ApplyConflict():
            return statuses.apply_conflict(error)
        case PatchError():
            return StatusError(error.code, error.reason, error.message, details={} if error.code == 422 else None)
        case UnsupportedProtobuf():
            if error.unknown_field:
                return statuses.bad_request(str(error))
            return StatusError(415, "UnsupportedMediaType", str(error))
    return StatusError(500, "InternalError", f"Internal error occurred: {error}")
