"""`POST /webhooks/{provider}/{namespace}[/{pipeline}]`: a Git host says that something has changed.

A delivery is authenticated before anything of it is parsed, over its raw bytes, with the Secret that a Pipeline names
in `git.webhookSecretRef`; no other Secret is read. Every delivery that cannot be authenticated gets the same answer: an
unknown Pipeline or namespace, one of another provider or without a Secret, and a wrong signature. What is authenticated
wakes promotions and Pipelines (`wakes`), and changes nothing else.

The path without a Pipeline takes the deliveries of any repository, so that one webhook of a repository, an organisation
or an App serves many Pipelines. It wakes those of the namespace whose own Secret signs the delivery and whose
repository it is about. Each delivery is compared with `COMPARED` secrets, random ones included where the namespace has
fewer, so that neither the answer nor its time tells how many there are or which was right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from secrets import token_bytes
from typing import Protocol

from kardinal.api.repository_url import InvalidRepositoryURL, same_path
from kardinal.objects import JsonObject, Key, key_of
from kardinal.objects.errors import KardinalError
from kardinal.runtime.clock import Clock
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit
from kardinal_controller.http.body import off_loop
from kardinal_controller.http.host_secrets import HostSecrets
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.wakes import Wakes

__all__ = ["HostDelivery", "HostWebhooks", "WebhookParser"]

DELIVERIES_PER_MINUTE = 600
"""Deliveries a minute per Pipeline whose signature is right; more are answered 429."""
COMPARED = 16
"""Secrets that a delivery for a namespace is compared with; of more, those of the first names."""

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


WebhookParser = Callable[[Mapping[str, str], bytes, bytes], HostDelivery]
"""Called with headers, raw body and secret; raises a `KardinalError` for a delivery that it does not believe."""


@dataclass(frozen=True, slots=True)
class _Tried:
    """One secret compared with a delivery: `delivery` is None where it does not sign it."""

    secret: bytes
    delivery: HostDelivery | None


class HostWebhooks:
    """Receives the deliveries of Git hosts; `parsers` has one for each provider that sends some."""

    def __init__(
        self,
        secrets: HostSecrets,
        pipelines: Informer,
        *,
        wakes: Wakes,
        parsers: Mapping[str, WebhookParser],
        clock: Clock,
    ) -> None:
        self._secrets = secrets
        self._pipelines = pipelines
        self._wakes = wakes
        self._parsers = parsers
        self._rate = RateLimit(limit=DELIVERIES_PER_MINUTE, window=60.0, clock=clock)
        self._crowded = RateLimit(limit=1, window=3600.0, clock=clock)
        # Of this process alone: a constant would be a secret that everybody knows.
        self._decoy = token_bytes(32)

    async def stop(self) -> None:
        await self._wakes.stop()

    async def receive(self, provider: str, pipeline: Key, headers: Mapping[str, str], body: bytes) -> None:
        """Wake the Pipeline of the path. Raises `ProblemError` 401, 400, 429."""
        found = self._pipelines.get(*pipeline)
        named = _secret_of(found, provider)
        secret = await self._secrets.read(named) if named is not None else b""
        [tried] = await self._compare(provider, headers, body, [secret] if secret else [], most=1)
        if found is None or tried.delivery is None:
            raise _unauthorized()
        self._admit([found])
        self._wake(found, tried.delivery)

    async def receive_for_namespace(
        self, provider: str, namespace: str, headers: Mapping[str, str], body: bytes
    ) -> None:
        """Wake those Pipelines of a namespace whose secret and repository a delivery has; raises as `receive`."""
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
        concerned = [
            (pipeline, delivery)
            for named, secret in secrets.items()
            if (delivery := signed.get(secret)) is not None
            for pipeline in users[named]
            if _is_of(pipeline, delivery)
        ]
        admitted = self._admit([pipeline for pipeline, _ in concerned])
        for pipeline, delivery in concerned:
            if key_of(pipeline) in admitted:
                self._wake(pipeline, delivery)

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
        self, provider: str, headers: Mapping[str, str], body: bytes, secrets: Sequence[bytes], *, most: int
    ) -> list[_Tried]:
        """Compare a delivery with `most` secrets, however few there are."""
        parser = self._parsers.get(provider)
        if parser is None:
            # As much work as for a provider that there is, and the same answer.
            parser, secrets = next(iter(self._parsers.values())), ()
        decoys = [self._decoy] * (most - len(secrets))
        return await off_loop(body, lambda: [_try(parser, headers, body, each) for each in [*secrets, *decoys]])

    def _admit(self, pipelines: Sequence[JsonObject]) -> set[Key]:
        """Return those that take one more delivery; raises `ProblemError` 429 where none does."""
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
        self._wakes.wake(key, number=delivery.number, branch=delivery.branch)
        if delivery.proposed and pipeline["spec"]["git"].get("statusOnOthers"):
            self._wakes.wake_pipeline(key)


def _secret_of(pipeline: JsonObject | None, provider: str) -> Key | None:
    """Return the Secret that a Pipeline at this provider names; None where there is none."""
    if pipeline is None:
        return None
    git = pipeline["spec"]["git"]
    name = (git.get("webhookSecretRef") or {}).get("name")
    return Key(pipeline["metadata"]["namespace"], name) if name and git.get("provider") == provider else None


def _try(parser: WebhookParser, headers: Mapping[str, str], body: bytes, secret: bytes) -> _Tried:
    """Compare a delivery with one secret. Raises `ProblemError` 400 for a body that is signed and cannot be read."""
    try:
        return _Tried(secret, parser(headers, body, secret))
    except KardinalError as error:
        if getattr(error, "status", None) == HTTPStatus.BAD_REQUEST:
            raise ProblemError(HTTPStatus.BAD_REQUEST, str(error)) from None
        return _Tried(secret, None)


def _is_of(pipeline: JsonObject, delivery: HostDelivery) -> bool:
    """Return whether a delivery is about the repository of a Pipeline.

    The name of the host does not count, because a host may be reached by others than the one that it gives itself; the
    secret says which host it is.
    """
    try:
        return same_path(pipeline["spec"]["git"]["url"], delivery.repository)
    except InvalidRepositoryURL:
        return False


def _unauthorized() -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, "the delivery is not signed with the secret of a Pipeline here")
