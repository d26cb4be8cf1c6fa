"""`POST /api/v1/bundles` and `/api/v1/namespaces/<ns>/bundles`: CI requests a Bundle.

A request is checked in this order: its size; the presence of credentials; the token and the signature of its raw bytes,
with the Secret of the namespace that it names; its shape; and finally whether the Pipeline exists. So a client without
valid credentials learns nothing about existing objects. `/api/v1/namespaces/<ns>/bundles` names the namespace in its
path, so no part of the body is read before authentication; of a body for `/api/v1/bundles` only the namespace is read.
So each of the two paths is a group of routes with its own authentication.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus

import orjson
from aiohttp import web

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.signature import SIGNATURE, TIMESTAMP
from kardinal.runtime.informer import Informer
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recorder import EventRecorder
from kardinal.runtime.routes import HttpRoute, RouteGroup
from kardinal_controller.attestations import Attestations
from kardinal_controller.http.authentication import Claim, PostAuthenticator, unauthorized
from kardinal_controller.http.bodies import STRANGERS, Bodies, Body
from kardinal_controller.http.body import BodyUnreadable, decode, is_namespace, namespace_of
from kardinal_controller.http.creation import Creator
from kardinal_controller.http.credentials import Token
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.request import BundleRequest, check_against, parse_request
from kardinal_controller.http.request_credentials import RequestCredentials

__all__ = ["BundlePosts"]

POSTS_PER_MINUTE = 100
"""The most Bundles per minute and Pipeline; further ones are answered 429."""


@dataclass(frozen=True, slots=True)
class _Post:
    """A request with a valid token and signature, and the hash of its body, which is not kept.

    `request` is None if this same request has created the Bundle `made` before.
    """

    claim: Claim
    token: Token
    request: BundleRequest | None
    body_hash: str = ""
    made: str = ""


class BundlePosts:
    """Create the Bundles that CI posts."""

    def __init__(
        self,
        client: Client,
        pipelines: Informer,
        *,
        clock: Clock,
        recorder: EventRecorder,
        attestations: Attestations,
        bodies: Bodies,
    ) -> None:
        self._pipelines = pipelines
        self.authenticator = PostAuthenticator(
            client, clock=clock, recorder=recorder, knows=lambda namespace: bool(pipelines.list(namespace))
        )
        self._creator = Creator(client, clock=clock, recorder=recorder, attestations=attestations)
        self._rate = RateLimit(limit=POSTS_PER_MINUTE, window=60.0, clock=clock)
        self._bodies = bodies

    def groups(self) -> Sequence[RouteGroup[_Post]]:
        """Return a route group for each of the two paths."""
        named = HttpRoute("POST", "/api/v1/namespaces/{namespace}/bundles", self._create)
        unnamed = HttpRoute("POST", "/api/v1/bundles", self._create)
        return (
            RouteGroup((named,), self._namespace_in_path, stop=self.authenticator.stop),
            RouteGroup((unnamed,), self._namespace_in_body),
        )

    @asynccontextmanager
    async def _namespace_in_path(self, http: web.Request) -> AsyncIterator[_Post]:
        """Check the token before the body is read."""
        credentials = _credentials(http)
        namespace = http.match_info["namespace"]
        if not is_namespace(namespace):
            raise ProblemError(HTTPStatus.NOT_FOUND, "the path does not name a namespace")
        claim = await self.authenticator.claim(namespace, credentials, address=http.remote)
        if claim.token is None:
            raise self.authenticator.refuse(claim)
        yield await self._read_for(claim, http)

    @asynccontextmanager
    async def _namespace_in_body(self, http: web.Request) -> AsyncIterator[_Post]:
        """Decode the body for its namespace and authenticate, before the body is decoded for the rest."""
        yield await self._read_for_its_namespace(_credentials(http), http)

    async def _read_for(self, claim: Claim, http: web.Request) -> _Post:
        async with self._bodies.body(http, owner=claim.namespace) as body:
            return await self._authenticated(claim, body)

    async def _read_for_its_namespace(self, credentials: RequestCredentials, http: web.Request) -> _Post:
        async with self._bodies.body(http, owner=STRANGERS) as body:
            try:
                namespace = await body.work(_namespace_in, body.content)
            except BodyUnreadable as error:
                raise unauthorized(error.detail) from None
            claim = await self.authenticator.claim(namespace, credentials, address=http.remote)
            return await self._authenticated(claim, body)

    async def _authenticated(self, claim: Claim, body: Body) -> _Post:
        token = self.authenticator.authenticate(claim, body.content)
        if name := self._creator.made_by(claim):
            return _Post(claim, token, None, made=name)
        request, body_hash = await body.work(_read, body.content, claim.namespace)
        return _Post(claim, token, request, body_hash)

    async def _create(self, _: web.Request, post: _Post) -> web.Response:
        namespace = post.claim.namespace
        if post.request is None:
            return _created(post.made, namespace)
        _check_scope(post.request, post.token)
        self._check_pipeline(post.request)
        name = await self._creator.create(post.request.bundle(), post.claim, post.token, post.body_hash)
        return _created(name, namespace)

    def _check_pipeline(self, request: BundleRequest) -> None:
        """Raise `ProblemError` 404, 422 or 429 if the Pipeline does not exist, or does not accept the Bundle."""
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


def _namespace_in(body: bytes) -> str:
    """Return the namespace that a body names; nothing else that was decoded is kept."""
    return namespace_of(decode(body))


def _read(body: bytes, namespace: str) -> tuple[BundleRequest, str]:
    """Return the request in a body, and the hash of the body; nothing else that was decoded is kept."""
    return parse_request(decode(body), namespace=namespace), hashlib.sha256(body).hexdigest()


def _created(name: str, namespace: str) -> web.Response:
    return web.Response(
        status=HTTPStatus.CREATED.value,
        body=orjson.dumps({"name": name, "namespace": namespace}),
        content_type="application/json",
    )


def _check_scope(request: BundleRequest, token: Token) -> None:
    """Raise `ProblemError` 403 if the scope of the token does not allow the Bundle.

    The answer is the same whether or not the Pipeline exists.
    """
    if not token.may_post_to(request.pipeline):
        raise ProblemError(HTTPStatus.FORBIDDEN, f"{token.title} may not post to Pipeline {request.pipeline}")
    if request.type not in token.types:
        raise ProblemError(HTTPStatus.FORBIDDEN, f"{token.title} may not post Bundles of type {request.type}")
    if request.pin and not token.may_pin:
        message = f"{token.title} may not pin Bundles: leave pin out, or give it mayPin: true in tokens.yaml"
        raise ProblemError(HTTPStatus.FORBIDDEN, message)


def _credentials(http: web.Request) -> RequestCredentials:
    credentials = RequestCredentials.read(http.headers)
    if credentials is None:
        raise unauthorized(
            f"send Authorization: Bearer <token>, {TIMESTAMP}: <seconds since 1970> "
            f"and {SIGNATURE}: sha256=<hex HMAC-SHA256>"
        )
    return credentials
