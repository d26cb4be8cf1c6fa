"""`POST /api/v1/approvals`: a person approves a Bundle at a gate, with a bearer token of the API server.

A request is checked in this order: its token, by a TokenReview; the shape of its body; the verb `approve` on the
template, by a SubjectAccessReview; and only then whether gate and Bundle exist. So who may not approve learns nothing
about existing objects. The Approval is signed by the controller, so it counts in every cluster.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

import orjson
from aiohttp import web

from kardinal.clock import Clock
from kardinal.objects import Key
from kardinal.objects.naming import NAME_LIMIT
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.approval import ApprovalSpec
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.translation.topology import read_topology
from kardinal.runtime.addresses import network_of
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recent_answers import RecentAnswers
from kardinal.runtime.routes import HttpRoute, RouteGroup
from kardinal_controller.approvals.creation import ApprovalCreator
from kardinal_controller.approvals.request import ApprovalRequest, parse
from kardinal_controller.caches import Caches
from kardinal_controller.http.authentication import ATTEMPTS_PER_MINUTE, unauthorized
from kardinal_controller.http.bodies import Bodies
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.ui.access.refusal import Refusal
from kardinal_controller.ui.access.reviews import Person, Reviews

__all__ = ["ApprovalPosts", "check_expiry", "created"]

PATH = "/api/v1/approvals"
FRESH = 5.0
"""The time in seconds for which the user of a token is remembered."""
PEOPLE = 1_024
"""The most tokens whose users are remembered, by their hashes."""
REVIEWS_PER_MINUTE = 60
ALL_REVIEWS_PER_MINUTE = 600
"""The unknown tokens a minute and address, and of all addresses, that the API server is asked about."""
APPROVALS_PER_MINUTE = 100
"""The most Approvals per minute and Bundle."""

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Post:
    person: Person
    request: ApprovalRequest


class ApprovalPosts:
    """Create the Approvals that people post."""

    def __init__(
        self, caches: Caches, reviews: Reviews, creator: ApprovalCreator, *, clock: Clock, bodies: Bodies
    ) -> None:
        self._caches = caches
        self._reviews = reviews
        self._creator = creator
        self._clock = clock
        self._bodies = bodies
        # By the hash of a token, so that no valid token is in memory longer than its request.
        self._people = RecentAnswers[Person | None](clock=clock, most=PEOPLE)
        self._accepted: OrderedDict[bytes, None] = OrderedDict()
        """The hashes of tokens that were valid at their last review: a stranger does not keep them from another."""
        self._asked = RateLimit(limit=REVIEWS_PER_MINUTE, window=60.0, clock=clock)
        self._all_asked = RateLimit(limit=ALL_REVIEWS_PER_MINUTE, window=60.0, clock=clock)
        self._failures = RateLimit(limit=ATTEMPTS_PER_MINUTE, window=60.0, clock=clock)
        self._rate = RateLimit(limit=APPROVALS_PER_MINUTE, window=60.0, clock=clock)

    def group(self) -> RouteGroup[_Post]:
        return RouteGroup((HttpRoute("POST", PATH, self._create),), self._authenticated, stop=self._people.stop)

    @asynccontextmanager
    async def _authenticated(self, http: web.Request) -> AsyncIterator[_Post]:
        """Review the token before the body is read."""
        person = await self._person(http)
        async with self._bodies.body(http, owner=f"approver {person.name}") as body:
            request = await body.work(parse, body.content, ApprovalRequest)
        yield _Post(person, request)

    async def _person(self, http: web.Request) -> Person:
        address = network_of(http.remote)
        scheme, _, token = http.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise unauthorized("send Authorization: Bearer <token of the API server>")
        person = None
        if token.isascii() and token.isprintable():
            person = await self._reviewed(token, address)
        if person is not None:
            return person
        if wait := self._failures.admit(address):
            raise _too_many("failed attempts from this address", wait)
        raise unauthorized("the API server does not accept this token")

    async def _reviewed(self, token: str, address: str) -> Person | None:
        key = hashlib.sha256(token.encode()).digest()

        async def ask() -> Person | None:
            if key not in self._accepted and (wait := self._asked.admit(address) or self._all_asked.admit("")):
                raise _too_many("tokens to review", wait)
            person = await self._reviews.person_of(token)
            self._accepted.pop(key, None)
            if person is not None:
                self._accepted[key] = None
                if len(self._accepted) > PEOPLE:
                    self._accepted.popitem(last=False)
            return person

        try:
            return await self._people.get(key, ask, max_age=FRESH)
        except Refusal as refusal:
            raise _unanswered(refusal) from None

    async def _create(self, _: web.Request, post: _Post) -> web.Response:
        request = post.request
        gate = Key(*request.template)
        await self._check_right(post.person, gate)
        bundle = self._bundle(request, gate)
        check_expiry(request.expires_at, self._clock)
        if wait := self._rate.admit((bundle.metadata.uid,)):
            raise _too_many(f"approvals of Bundle {request.bundle}", wait)
        spec = _spec(post, bundle, gate)
        approval = await self._creator.create(_name(request.bundle, gate.name), spec, bundle)
        _log.info(
            "approved",
            approver=spec.approver,
            namespace=request.namespace,
            bundle=request.bundle,
            environment=request.environment,
            gate=spec.gate,
        )
        return created(approval.metadata.name, request.namespace)

    async def _check_right(self, person: Person, gate: Key) -> None:
        try:
            allowed = await self._reviews.may(person, "approve", POLICY_GATE, gate.namespace, gate.name)
        except Refusal as refusal:
            raise _unanswered(refusal) from None
        if not allowed:
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                f"{person.name} may not approve at gate {gate}: the verb approve on policygates.kardinal.io, with the "
                f"resource name {gate.name}, in namespace {gate.namespace} gives the right",
            )

    def _bundle(self, request: ApprovalRequest, gate: Key) -> Bundle:
        """Return the Bundle that waits for the gate. Raises `ProblemError` 404, which does not tell what is missing."""
        stored = self._caches.bundles.get(request.namespace, request.bundle)
        graph = self._caches.graphs.get(request.namespace, request.bundle)
        if stored is not None and graph is not None:
            bundle = Bundle.model_validate(stored)
            recorded = bundle.status.graph
            if recorded is not None and recorded.uid == graph["metadata"]["uid"]:
                gates = read_topology(graph).gates
                wanted = (gate.namespace, gate.name, request.environment)
                if any((each.namespace, each.name, each.environment) == wanted for each in gates):
                    return bundle
        raise ProblemError(
            HTTPStatus.NOT_FOUND,
            f"no Bundle {request.bundle} in namespace {request.namespace} has gate {gate} before environment "
            f"{request.environment}; one that was created a moment ago has its gates in a second",
        )


def _spec(post: _Post, bundle: Bundle, gate: Key) -> ApprovalSpec:
    request = post.request
    if len(post.person.name) > 256 or not post.person.name.isprintable():
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "the name of the user does not fit into an Approval")
    return ApprovalSpec(
        bundle=request.bundle,
        uid=bundle.metadata.uid,
        environment=request.environment,
        gate=f"{gate.namespace}/{gate.name}",
        approver=post.person.name,
        reason=request.reason or None,
        expires_at=request.expires_at,
        via="controller",
    )


def _name(bundle: str, gate: str) -> str:
    suffix = secrets.token_hex(5)
    return f"{f'{bundle}-{gate}'[: NAME_LIMIT - len(suffix) - 1].rstrip('-.')}-{suffix}"


def check_expiry(expires_at: datetime | None, clock: Clock) -> None:
    """Raise `ProblemError` 422 for an approval that has expired already."""
    if expires_at is not None and expires_at <= clock.now():
        raise ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, "expiresAt is not in the future")


def created(name: str, namespace: str) -> web.Response:
    return web.Response(
        status=HTTPStatus.CREATED.value,
        body=orjson.dumps({"name": name, "namespace": namespace}),
        content_type="application/json",
    )


def _too_many(what: str, wait: int) -> ProblemError:
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS, f"too many {what}; try again in {wait} s", headers={"Retry-After": str(wait)}
    )


def _unanswered(refusal: Refusal) -> ProblemError:
    return ProblemError(
        HTTPStatus(refusal.status), "the API server did not answer; try again", headers={"Retry-After": "5"}
    )
