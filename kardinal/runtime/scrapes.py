"""Access to /metrics: the API server authenticates the bearer token, and decides whether its user may `get` the path.

The metrics contain the names of all teams' Pipelines, so a scrape needs a token. As in other controllers, it is checked
by a TokenReview and a SubjectAccessReview for the non-resource URL `/metrics`. Answers are cached, positive ones for
longer. A stranger can invent any number of tokens, so tokens that were never valid are reviewed at most `GUESSES` times
a minute per address and `ALL_GUESSES` times in total, and never replace a valid one in the cache.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from aiohttp import web

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, KubeError
from kardinal.objects import JsonObject, ResourceType
from kardinal.runtime.addresses import network_of
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit

__all__ = ["ACCESS_REVIEW", "TOKEN_REVIEW", "ScrapeAccess"]

ALLOWED_SECONDS = 60.0
"""The time in seconds for which a valid token is cached."""
REFUSED_SECONDS = 10.0
"""The time in seconds for which an invalid token is cached."""
REMEMBERED = 64
"""The number of valid tokens in the cache, and the same number of invalid ones."""
KNOWN_SECONDS = 3600.0
"""The time in seconds for which the reviews of a token that was valid do not count as guesses."""
GUESSES = 10
ALL_GUESSES = 60

TOKEN_REVIEW = ResourceType("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEW = ResourceType(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False
)
_RIGHTS = (
    "give this program `create` on tokenreviews.authentication.k8s.io and subjectaccessreviews.authorization.k8s.io, "
    "as deploy/ does, or start it with --metrics-auth=none"
)

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: HTTPStatus
    at: float


class ScrapeAccess:
    """Decide about scrapes by the answers of one API server."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        # By the hash of a token, so that no valid token is in memory.
        self._allowed: OrderedDict[bytes, _Answer] = OrderedDict()
        self._refused: OrderedDict[bytes, _Answer] = OrderedDict()
        self._guesses = RateLimit(limit=GUESSES, window=60.0, clock=clock)
        self._all_guesses = RateLimit(limit=ALL_GUESSES, window=60.0, clock=clock)
        self._warnings = RateLimit(limit=1, window=3600.0, clock=clock)

    async def check(self, request: web.Request) -> None:
        """Raise the HTTP answer for a request that may not read metrics: 401, 403, 429 or 503."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token.isascii() or not token:
            raise _refusal(HTTPStatus.UNAUTHORIZED)
        status = await self._status(token, network_of(request.remote))
        if status is not HTTPStatus.OK:
            raise _refusal(status)

    async def _status(self, token: str, address: str) -> HTTPStatus:
        key = hashlib.sha256(token.encode()).digest()
        now = self._clock.monotonic()
        allowed = self._allowed.get(key)
        refused = self._refused.get(key)
        if allowed is not None and now < allowed.at + ALLOWED_SECONDS:
            return allowed.status
        if refused is not None and now < refused.at + REFUSED_SECONDS:
            return refused.status
        known = allowed is not None and now < allowed.at + KNOWN_SECONDS
        if not known and (self._guesses.admit(address) or self._all_guesses.admit("")):
            return HTTPStatus.TOO_MANY_REQUESTS
        try:
            status = await self._review(token)
        except KubeError as error:
            if not self._warnings.admit(type(error).__name__):
                remedy = _RIGHTS if isinstance(error, Forbidden) else "it is asked again at the next scrape"
                _log.warning(f"who asks for metrics could not be reviewed: {remedy}", error=type(error).__name__)
            return HTTPStatus.SERVICE_UNAVAILABLE
        self._remember(key, _Answer(status, self._clock.monotonic()))
        return status

    def _remember(self, key: bytes, answer: _Answer) -> None:
        self._allowed.pop(key, None)
        self._refused.pop(key, None)
        kept = self._allowed if answer.status is HTTPStatus.OK else self._refused
        kept[key] = answer
        while len(kept) > REMEMBERED:
            kept.popitem(last=False)

    async def _review(self, token: str) -> HTTPStatus:
        reviewed = await self._ask(TOKEN_REVIEW, {"token": token})
        if reviewed.get("authenticated") is not True:
            return HTTPStatus.UNAUTHORIZED
        user = reviewed.get("user") or {}
        spec = {
            "user": user.get("username", ""),
            **{field: user[field] for field in ("uid", "groups", "extra") if user.get(field)},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        }
        answer = await self._ask(ACCESS_REVIEW, spec)
        return HTTPStatus.OK if answer.get("allowed") is True else HTTPStatus.FORBIDDEN

    async def _ask(self, resource: ResourceType, spec: JsonObject) -> dict[str, Any]:
        """Return the status of a review."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {}, "spec": spec}
        return (await self._client.create(resource, body)).get("status") or {}


def _refusal(status: HTTPStatus) -> web.HTTPException:
    if status is HTTPStatus.UNAUTHORIZED:
        headers = {"WWW-Authenticate": "Bearer"}
        return web.HTTPUnauthorized(text="send Authorization: Bearer <token of an account>\n", headers=headers)
    if status is HTTPStatus.FORBIDDEN:
        return web.HTTPForbidden(text="bind the account to ClusterRole kardinal-metrics-reader\n")
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        return web.HTTPTooManyRequests(text="too many tokens that are not known\n", headers={"Retry-After": "60"})
    return web.HTTPServiceUnavailable(text="the API server did not say who this is; see the log\n")
