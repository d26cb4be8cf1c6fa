"""The HTTP server of the control plane.

A request is trusted in this order: its size, the presence of credentials, the token and the signature of its raw bytes
against the Secret of the namespace that it names, its shape, and only then whether the Pipeline exists: who cannot
authenticate learns nothing about what is there. `/api/v1/namespaces/<ns>/bundles` names the namespace in its path, so
nothing of the body is read before; of a body for `/api/v1/bundles` only the namespace is. Deliveries of Git hosts have
rules of their own (`hosts`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

from kardinal.api import Pipeline
from kardinal.api.signature import SIGNATURE, TIMESTAMP
from kardinal.kube import Client, Invalid, KubeError
from kardinal.objects import Key
from kardinal.runtime.clock import Clock
from kardinal.runtime.informer import Informer
from kardinal.runtime.listener import Listener
from kardinal.runtime.logging import describe, get_logger
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recorder import EventRecorder
from kardinal_controller.attestations import Attestations
from kardinal_controller.http.authentication import Authenticator, Claim, unauthorized
from kardinal_controller.http.bodies import BODY_LIMIT, LargeBodies
from kardinal_controller.http.body import BodyUnreadable, decode, is_namespace, namespace_of, off_loop
from kardinal_controller.http.creation import Creator
from kardinal_controller.http.credentials import Token
from kardinal_controller.http.delivery import Delivery
from kardinal_controller.http.hosts import HostWebhooks
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.request import BundleRequest, check_against, parse_request

__all__ = ["ApiServer"]

CONNECTIONS = 256
"""Connections at once."""
POSTS_PER_MINUTE = 100
"""Bundles a minute per Pipeline; more are answered 429."""

_log = get_logger(__name__)


class ApiServer:
    """The webhook on `address` (`host:port`, port 0 takes a free one). A runnable of the manager.

    One address of a client may have `per_address` connections, 0: any number.
    """

    def __init__(
        self,
        client: Client,
        pipelines: Informer,
        *,
        clock: Clock,
        address: str,
        per_address: int,
        recorder: EventRecorder,
        attestations: Attestations,
        hosts: HostWebhooks,
    ) -> None:
        self._hosts = hosts
        self._pipelines = pipelines
        self._address = address
        self._authenticator = Authenticator(
            client, clock=clock, recorder=recorder, knows=lambda namespace: bool(pipelines.list(namespace))
        )
        self._creator = Creator(client, clock=clock, recorder=recorder, attestations=attestations)
        self._rate = RateLimit(limit=POSTS_PER_MINUTE, window=60.0, clock=clock)
        self._strangers = LargeBodies()
        self._known: defaultdict[str, LargeBodies] = defaultdict(LargeBodies)
        self._listener = Listener(most=CONNECTIONS, per_address=per_address, shutdown_seconds=5.0)
        self.url = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_problems])
        app.router.add_post("/api/v1/bundles", self._post_naming_namespace)
        app.router.add_post("/api/v1/namespaces/{namespace}/bundles", self._post_to_namespace)
        app.router.add_post("/webhooks/{provider}/{namespace}", self._post_of_host)
        app.router.add_post("/webhooks/{provider}/{namespace}/{pipeline}", self._post_of_host)
        self.url = await self._listener.start(app, self._address)

    async def stop(self) -> None:
        await self._listener.stop()
        await self._authenticator.stop()
        await self._hosts.stop()

    async def _post_to_namespace(self, http: web.Request) -> web.Response:
        """Compare the token before the body is read."""
        delivery = _delivery(http)
        namespace = http.match_info["namespace"]
        if not is_namespace(namespace):
            raise ProblemError(HTTPStatus.NOT_FOUND, "the path does not name a namespace")
        claim = await self._authenticator.claim(namespace, delivery, address=http.remote)
        if claim.token is None:
            raise self._authenticator.refuse(claim)
        async with self._known[namespace].body(http) as body:
            token = self._authenticator.authenticate(claim, body)
            if name := self._creator.made_by(claim):
                return _created(name, namespace)
            document = await off_loop(body, decode, body)
            request = await off_loop(body, parse_request, document, namespace=namespace)
            return await self._create(request, claim, token, body)

    async def _post_naming_namespace(self, http: web.Request) -> web.Response:
        """Decode the body for its namespace, authenticate, and only then look at the rest of what was decoded."""
        delivery = _delivery(http)
        async with self._strangers.body(http) as body:
            try:
                document = await off_loop(body, decode, body)
            except BodyUnreadable as error:
                raise unauthorized(error.detail) from None
            namespace = namespace_of(document)
            claim = await self._authenticator.claim(namespace, delivery, address=http.remote)
            token = self._authenticator.authenticate(claim, body)
            if name := self._creator.made_by(claim):
                return _created(name, namespace)
            request = await off_loop(body, parse_request, document, namespace=namespace)
            return await self._create(request, claim, token, body)

    async def _post_of_host(self, http: web.Request) -> web.Response:
        names = http.match_info
        async with self._strangers.body(http) as body:
            provider, namespace = names["provider"], names["namespace"]
            if "pipeline" in names:
                await self._hosts.receive(provider, Key(namespace, names["pipeline"]), http.headers, body)
            else:
                await self._hosts.receive_for_namespace(provider, namespace, http.headers, body)
        return web.Response(status=HTTPStatus.ACCEPTED.value)

    async def _create(self, request: BundleRequest, claim: Claim, token: Token, body: bytes) -> web.Response:
        _check_scope(request, token)
        namespace = request.namespace
        stored = self._pipelines.get(namespace, request.pipeline)
        if stored is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND,
                f"there is no Pipeline {request.pipeline} in namespace {namespace}; "
                "post to /api/v1/namespaces/<namespace>/bundles when it lives elsewhere",
            )
        check_against(request, Pipeline.model_validate(stored))
        if wait := self._rate.admit((namespace, request.pipeline)):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Pipeline {request.pipeline} takes {POSTS_PER_MINUTE} Bundles a minute; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        return _created(await self._creator.create(request.bundle(), claim, token, body), namespace)


def _created(name: str, namespace: str) -> web.Response:
    return web.Response(
        status=HTTPStatus.CREATED.value,
        body=orjson.dumps({"name": name, "namespace": namespace}),
        content_type="application/json",
    )


def _check_scope(request: BundleRequest, token: Token) -> None:
    """Raise `ProblemError` 403 where a token may not post what it posts; whether the Pipeline exists is not told."""
    if not token.may_post_to(request.pipeline):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"{token.title} may not post to Pipeline {request.pipeline}")
    if request.type not in token.types:
        raise ProblemError(HTTPStatus.FORBIDDEN, f"{token.title} may not post Bundles of type {request.type}")
    if request.pin and not token.may_pin:
        message = f"{token.title} may not pin Bundles: leave pin out, or give it mayPin: true in tokens.yaml"
        raise ProblemError(HTTPStatus.FORBIDDEN, message)


def _delivery(http: web.Request) -> Delivery:
    delivery = Delivery.read(http.headers)
    if delivery is None:
        raise unauthorized(
            f"send Authorization: Bearer <token>, {TIMESTAMP}: <seconds since 1970> "
            f"and {SIGNATURE}: sha256=<hex HMAC-SHA256>"
        )
    return delivery


@web.middleware
async def _problems(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Turn every answer other than success into a problem document."""
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
