"""`POST /webhooks/{provider}/{namespace}[/{pipeline}]`: a Git host reports a change.

For example, GitHub sends its deliveries for Pipeline `web` to `/webhooks/github/team-a/web`.

A delivery is authenticated over its raw bytes before any part of it is parsed, with the Secret that a Pipeline names in
`git.webhookSecretRef`; no other Secret is read. Every delivery that cannot be authenticated gets the same answer: for
an unknown Pipeline or namespace, another provider, a missing Secret, and a wrong signature. An authenticated delivery
wakes promotions and Pipelines (`wakes`), and changes nothing else.

The path without a Pipeline takes the deliveries of any repository, so that one webhook of a repository, an organisation
or an App serves many Pipelines. It wakes the Pipelines of the namespace whose own Secret signs the delivery and whose
repository the delivery names. Each delivery is compared with `COMPARED` secrets, including random ones if the namespace
has fewer, so that neither the answer nor its time reveals how many there are or which one was right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_bytes
from typing import Protocol

from aiohttp import web

from kardinal.clock import Clock
from kardinal.objects import JsonObject, Key, key_of
from kardinal.objects.errors import KardinalError
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.routes import HttpRoute, RouteGroup
from kardinal.tree.repository_url import InvalidRepositoryURL, same_path
from kardinal_controller.http.bodies import STRANGERS, Bodies, Body
from kardinal_controller.http.host_secrets import HostSecrets
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.wakes import Wakes

__all__ = ["HostDelivery", "HostWebhooks", "WebhookParser"]

DELIVERIES_PER_MINUTE = 600
"""The most valid deliveries per minute and Pipeline; further ones are answered 429."""
COMPARED = 16
"""The most Secrets that a delivery for a namespace is compared with; of more, the first by name."""

_log = get_logger(__name__)


class HostDelivery(Protocol):
    """The subject of a delivery, as the parser of a provider returns it."""

    @property
    def repository(self) -> str: ...

    @property
    def number(self) -> int | None: ...

    @property
    def branch(self) -> str: ...

    @property
    def proposed(self) -> bool: ...

    @property
    def checked(self) -> tuple[str, ...]: ...


WebhookParser = Callable[[Mapping[str, str], bytes, bytes], HostDelivery]
"""Called with headers, raw body and secret; raises a `KardinalError` for a delivery that is not authentic."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """The result of comparing one secret with a delivery; `delivery` is None if the secret does not sign it."""

    secret: bytes
    delivery: HostDelivery | None


@dataclass(frozen=True, slots=True)
class _Signed:
    """A Pipeline, and a delivery signed with its secret, as parsed by its provider."""

    pipeline: JsonObject
    delivery: HostDelivery


class HostWebhooks:
    """Receive the deliveries of Git hosts; `parsers` has an entry for each provider that sends deliveries."""

    def __init__(
        self,
        secrets: HostSecrets,
        pipelines: Informer,
        *,
        wakes: Wakes,
        parsers: Mapping[str, WebhookParser],
        clock: Clock,
        bodies: Bodies,
    ) -> None:
        self._secrets = secrets
        self._pipelines = pipelines
        self._wakes = wakes
        self._parsers = parsers
        self._bodies = bodies
        self._rate = RateLimit(limit=DELIVERIES_PER_MINUTE, window=60.0, clock=clock)
        self._crowded = RateLimit(limit=1, window=3600.0, clock=clock)
        # Random per process, because a constant would be known from the source code.
        self._decoy = token_bytes(32)

    def group(self) -> RouteGroup[Sequence[_Signed]]:
        """Return a route group for the two paths: of one Pipeline, and of a namespace."""
        paths = ("/webhooks/{provider}/{namespace}", "/webhooks/{provider}/{namespace}/{pipeline}")
        routes = [HttpRoute("POST", path, self._receive) for path in paths]
        return RouteGroup(routes, self._authenticated, stop=self._wakes.stop)

    @asynccontextmanager
    async def _authenticated(self, http: web.Request) -> AsyncIterator[Sequence[_Signed]]:
        """Find the Pipelines that a delivery is for. Raises `ProblemError` 401, 400."""
        yield await self._compared(http)

    async def _compared(self, http: web.Request) -> Sequence[_Signed]:
        names = http.match_info
        async with self._bodies.body(http, owner=STRANGERS) as body:
            provider = names["provider"]
            if "pipeline" in names:
                return [await self._signed(provider, Key(names["namespace"], names["pipeline"]), http.headers, body)]
            return await self._signed_in_namespace(provider, names["namespace"], http.headers, body)

    async def _receive(self, _: web.Request, signed: Sequence[_Signed]) -> web.Response:
        """Wake the Pipelines that accept one more delivery. Raises `ProblemError` 429."""
        admitted = self._admit([each.pipeline for each in signed])
        for each in signed:
            if key_of(each.pipeline) in admitted:
                self._wake(each.pipeline, each.delivery)
        return web.Response(status=HTTPStatus.ACCEPTED.value)

    async def _signed(self, provider: str, pipeline: Key, headers: Mapping[str, str], body: Body) -> _Signed:
        """Return the Pipeline of the path, if its secret signs the delivery. Raises `ProblemError` 401, 400."""
        found = self._pipelines.get(*pipeline)
        named = _secret_of(found, provider)
        secret = await self._secrets.read(named) if named is not None else b""
        [tried] = await self._compare(provider, headers, body, [secret] if secret else [], most=1)
        if found is None or tried.delivery is None:
            raise _unauthorized()
        return _Signed(found, tried.delivery)

    async def _signed_in_namespace(
        self, provider: str, namespace: str, headers: Mapping[str, str], body: Body
    ) -> Sequence[_Signed]:
        """Return the Pipelines of a namespace whose secret signs the delivery and whose repository it names.

        Raises the same errors as `_signed`.
        """
        users: dict[Key, list[JsonObject]] = {}
        for pipeline in self._pipelines.list(namespace):
            if (named := _secret_of(pipeline, provider)) is not None:
                users.setdefault(named, []).append(pipeline)
        secrets = {named: await self._secrets.read(named) for named in self._first(namespace, sorted(users))}
        distinct = sorted({secret for secret in secrets.values() if secret})
        tried = await self._compare(provider, headers, body, distinct, most=COMPARED)
        signed = {one.secret: one.delivery for one in tried if one.delivery is not None}
        if not signed:
            raise _unauthorized()
        return [
            _Signed(pipeline, delivery)
            for named, secret in secrets.items()
            if (delivery := signed.get(secret)) is not None
            for pipeline in users[named]
            if _is_of(pipeline, delivery)
        ]

    def _first(self, namespace: str, named: Sequence[Key]) -> Sequence[Key]:
        if len(named) > COMPARED and not self._crowded.admit(namespace):
            _log.warning(
                f"the Pipelines of a namespace name more than {COMPARED} Secrets for webhooks: deliveries to the path "
                "of the namespace are compared with the first; use one Secret for several Pipelines, or the path of "
                "one Pipeline",
                namespace=namespace,
                ignored=[key.name for key in named[COMPARED:]],
            )
        return named[:COMPARED]

    async def _compare(
        self, provider: str, headers: Mapping[str, str], body: Body, secrets: Sequence[bytes], *, most: int
    ) -> list[_Tried]:
        """Compare a delivery with `most` secrets, filled up with decoys if there are fewer."""
        parser = self._parsers.get(provider)
        if parser is None:
            # The same work and the same answer as for a known provider.
            parser = next(iter(self._parsers.values()))
            secrets = ()
        decoys = [self._decoy] * (most - len(secrets))
        return await body.work(lambda: [_try(parser, headers, body.content, each) for each in [*secrets, *decoys]])

    def _admit(self, pipelines: Sequence[JsonObject]) -> set[Key]:
        """Return the Pipelines that accept one more delivery; raises `ProblemError` 429 if there is none."""
        waits = {key_of(pipeline): self._rate.admit(key_of(pipeline)) for pipeline in pipelines}
        admitted = {key for key, wait in waits.items() if not wait}
        if waits and not admitted:
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Pipeline {next(iter(waits)).name} takes {DELIVERIES_PER_MINUTE} deliveries a minute",
                headers={"Retry-After": str(min(waits.values()))},
            )
        return admitted

    def _wake(self, pipeline: JsonObject, delivery: HostDelivery) -> None:
        key = key_of(pipeline)
        self._wakes.wake(key, number=delivery.number, branch=delivery.branch, checked=delivery.checked)
        if delivery.proposed and pipeline["spec"]["git"].get("statusOnOthers"):
            self._wakes.wake_pipeline(key)


def _secret_of(pipeline: JsonObject | None, provider: str) -> Key | None:
    """Return the Secret that a Pipeline of this provider names; None if there is none."""
    if pipeline is None:
        return None
    git = pipeline["spec"]["git"]
    name = (git.get("webhookSecretRef") or {}).get("name")
    return Key(pipeline["metadata"]["namespace"], name) if name and git.get("provider") == provider else None


def _try(parser: WebhookParser, headers: Mapping[str, str], body: bytes, secret: bytes) -> _Tried:
    """Compare a delivery with one secret. Raises `ProblemError` 400 for a signed body that cannot be parsed."""
    try:
        return _Tried(secret, parser(headers, body, secret))
    except KardinalError as error:
        if getattr(error, "status", None) == HTTPStatus.BAD_REQUEST:
            raise ProblemError(HTTPStatus.BAD_REQUEST, str(error)) from None
        return _Tried(secret, None)


def _is_of(pipeline: JsonObject, delivery: HostDelivery) -> bool:
    """Return whether a delivery is about the repository of a Pipeline.

    The host name is ignored, because a host may be reached by another name than it reports; the secret identifies the
    host.
    """
    try:
        return same_path(pipeline["spec"]["git"]["url"], delivery.repository)
    except InvalidRepositoryURL:
        return False


def _unauthorized() -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, "the delivery is not signed with the secret of a Pipeline here")
