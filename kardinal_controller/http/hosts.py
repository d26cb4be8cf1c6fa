"""`POST /webhooks/{provider}/{namespace}/{pipeline}`: a Git host says that something has changed.

A delivery is authenticated before anything of it is parsed, over its raw bytes, with the Secret that the Pipeline names
in `git.webhookSecretRef`; nothing but that Secret is read. Every delivery that cannot be authenticated gets the same
answer: an unknown Pipeline, one of another provider or without a Secret, and a wrong signature. What is authenticated
wakes promotions and Pipelines (`wakes`), and changes nothing else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from kardinal.api.names import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.kube import Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, JsonObject, Key, labels_of
from kardinal.objects.errors import KardinalError
from kardinal.objects.secrets import SecretValueError, secret_value
from kardinal.runtime.clock import Clock
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.rate import RateLimit
from kardinal_controller.http.wakes import Wakes

__all__ = ["HostDelivery", "HostWebhooks", "WebhookParser"]

DELIVERIES_PER_MINUTE = 600
"""Deliveries a minute per Pipeline whose signature is right; more are answered 429."""
LIFETIME = 5.0
"""Seconds that a Secret, or that there is none, is remembered."""
REMEMBERED = 4096
"""Secrets that are remembered."""
KEY = "webhookSecret"
_SHORTEST = 16
"""Bytes of a secret; a shorter one can be guessed, an empty one is none."""
_NOBODY = b"\0" * 32

_log = get_logger(__name__)


class HostDelivery(Protocol):
    """The subject of a delivery, as the parser of a provider returns it."""

    @property
    def number(self) -> int | None: ...

    @property
    def branch(self) -> str: ...

    @property
    def proposed(self) -> bool: ...


WebhookParser = Callable[[Mapping[str, str], bytes, bytes], HostDelivery]
"""Called with headers, raw body and secret; raises a `KardinalError` for a delivery that it does not believe."""


@dataclass(frozen=True, slots=True)
class _Entry:
    secret: bytes
    until: float


class HostWebhooks:
    """Receives the deliveries of Git hosts; `parsers` has one for each provider that sends some."""

    def __init__(
        self,
        client: Client,
        pipelines: Informer,
        *,
        wakes: Wakes,
        parsers: Mapping[str, WebhookParser],
        clock: Clock,
    ) -> None:
        self._client = client
        self._pipelines = pipelines
        self._wakes = wakes
        self._parsers = parsers
        self._clock = clock
        self._rate = RateLimit(limit=DELIVERIES_PER_MINUTE, window=60.0, clock=clock)
        self._secrets: OrderedDict[Key, _Entry] = OrderedDict()
        self._reading = asyncio.Lock()

    def __len__(self) -> int:
        """Return the number of Secrets that are remembered."""
        return len(self._secrets)

    async def stop(self) -> None:
        await self._wakes.stop()

    async def receive(self, provider: str, pipeline: Key, headers: Mapping[str, str], body: bytes) -> None:
        """Wake what a delivery is about. Raises `ProblemError` 401, 400, 429."""
        parser = self._parsers.get(provider)
        secret = await self._secret(provider, pipeline)
        if parser is None or secret is None:
            # As much work as for a wrong signature, and the same answer.
            parser, secret = parser or next(iter(self._parsers.values())), _NOBODY
            self._parsed(parser, headers, body, secret)
            raise _unauthorized()
        delivery = self._parsed(parser, headers, body, secret)
        if wait := self._rate.admit(pipeline):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Pipeline {pipeline.name} takes {DELIVERIES_PER_MINUTE} deliveries a minute",
                headers={"Retry-After": str(wait)},
            )
        self._wakes.wake(pipeline, number=delivery.number, branch=delivery.branch)
        found = self._pipelines.get(*pipeline)
        if delivery.proposed and found is not None and found["spec"]["git"].get("statusOnOthers"):
            self._wakes.wake_pipeline(pipeline)

    def _parsed(self, parser: WebhookParser, headers: Mapping[str, str], body: bytes, secret: bytes) -> HostDelivery:
        try:
            return parser(headers, body, secret)
        except KardinalError as error:
            if getattr(error, "status", None) == HTTPStatus.BAD_REQUEST and secret is not _NOBODY:
                raise ProblemError(HTTPStatus.BAD_REQUEST, str(error)) from None
            raise _unauthorized() from None

    async def _secret(self, provider: str, pipeline: Key) -> bytes | None:
        """Return the secret of a Pipeline that is at this provider; None where there is none to be used."""
        found = self._pipelines.get(*pipeline)
        git = found["spec"]["git"] if found is not None else {}
        name = (git.get("webhookSecretRef") or {}).get("name")
        if not name or git.get("provider") != provider:
            return None
        key = Key(pipeline.namespace, name)
        # Read once for all that wait for it.
        async with self._reading:
            entry, now = self._secrets.get(key), self._clock.monotonic()
            if entry is None or entry.until <= now:
                entry = self._secrets[key] = _Entry(await self._read(key), now + LIFETIME)
                self._secrets.move_to_end(key)
                while len(self._secrets) > REMEMBERED:
                    self._secrets.popitem(last=False)
        return entry.secret or None

    async def _read(self, key: Key) -> bytes:
        try:
            secret = await self._client.get(SECRET, key.name, key.namespace)
        except (NotFound, Forbidden) as error:
            _log.warning("the Secret of a webhook cannot be read", secret=str(key), error=type(error).__name__)
            return b""
        except KubeError as error:
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE, "the API server did not answer; try again", headers={"Retry-After": "5"}
            ) from error
        value, problem = _usable(secret)
        if problem:
            _log.warning(f"the Secret of a webhook is not used: {problem}", secret=str(key))
        return value


def _usable(secret: JsonObject) -> tuple[bytes, str]:
    """Return the secret in a Secret, or why it is not used."""
    if labels_of(secret).get(LABEL_CREDENTIALS) != CREDENTIALS_WEBHOOK:
        return b"", f"it has no label {LABEL_CREDENTIALS}={CREDENTIALS_WEBHOOK}"
    try:
        value = secret_value(secret, KEY).rstrip(b"\r\n")
    except SecretValueError as error:
        return b"", str(error)
    return (value, "") if len(value) >= _SHORTEST else (b"", f"{KEY} has less than {_SHORTEST} bytes")


def _unauthorized() -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, "the delivery is not signed with the secret of a Pipeline here")
