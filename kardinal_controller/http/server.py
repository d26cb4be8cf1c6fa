"""The HTTP server of the control plane: one address, groups of routes, and problem documents for what goes wrong.

Which groups it has, and at which address, is composed in the program. Each group authenticates its own requests.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kardinal.kube import Invalid, KubeError
from kardinal.runtime.listener import Listener
from kardinal.runtime.logging import describe, get_logger
from kardinal.runtime.routes import RouteGroup, add_routes
from kardinal_controller.http.bodies import BODY_LIMIT
from kardinal_controller.http.problem import ProblemError

__all__ = ["HttpServer"]

CONNECTIONS = 256
"""Connections at once."""

_log = get_logger(__name__)


class HttpServer:
    """Groups of routes on `address` (`host:port`, port 0 takes a free one). A runnable of the manager.

    One address of a client may have `per_address` connections, 0: any number.
    """

    def __init__(self, groups: Sequence[RouteGroup[Any]], *, address: str, per_address: int) -> None:
        self._groups = groups
        self._address = address
        self._listener = Listener(most=CONNECTIONS, per_address=per_address, shutdown_seconds=5.0)
        self.url = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_problems])
        add_routes(app.router, self._groups)
        self.url = await self._listener.start(app, self._address)

    async def stop(self) -> None:
        await self._listener.stop()
        for group in self._groups:
            await group.stop()


@web.middleware
async def _problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn every unsuccessful answer into a problem document."""
    try:
        return await handler(request)
    except ProblemError as problem:
        return problem.response()
    except web.HTTPException as error:
        return ProblemError(HTTPStatus(error.status), error.reason, headers=_allow(error)).response()
    except Invalid as error:
        return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, error.message).response()
    except KubeError as error:
        _log.warning("bundle request failed", error=type(error).__name__)
        return ProblemError(
            HTTPStatus.SERVICE_UNAVAILABLE, "the API server did not answer; try again", headers={"Retry-After": "5"}
        ).response()
    except Exception as error:
        _log.error("bundle request failed by a bug", **describe(error))
        return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "the request failed by a bug; see the log").response()


def _allow(error: web.HTTPException) -> dict[str, Any]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
