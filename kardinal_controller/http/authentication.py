"""Authenticate the requests by which CI posts Bundles; `hosts` authenticates the deliveries of Git hosts.

Requests of strangers must be cheap: a Secret is read once in `LIFETIME` seconds, however many requests name its
namespace, whether it exists or not. Namespaces without a Pipeline, of which a stranger can invent any number, share a
small cache and are read at most `GUESSES` times per minute; beyond that they are treated as having no Secret. Failed
attempts are limited per address, which limits what a guesser can learn and write to the log. A request with a valid
token is never limited here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from kardinal.clock import Clock
from kardinal.kube import Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.promotion.api.names import WEBHOOK_SECRET
from kardinal.runtime.addresses import network_of
from kardinal.runtime.logging import get_logger
from kardinal.runtime.rate import RateLimit
from kardinal.runtime.recorder import EventRecorder
from kardinal_controller.http.credentials import NO_CREDENTIALS, Token, WebhookCredentials, read_credentials
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.request_credentials import TOLERANCE, RequestCredentials

__all__ = ["Claim", "PostAuthenticator", "unauthorized"]

LIFETIME = 5.0
"""The time in seconds for which a Secret, or its absence, is cached."""
PAUSE = 1.0
"""The time in seconds before a Secret is read again after the API server has failed."""
GUESSES = 60
"""The most reads per minute of Secrets in namespaces without a Pipeline."""
GUESSED = 256
"""The most namespaces without a Pipeline in the cache."""
ATTEMPTS_PER_MINUTE = 30
"""The failed attempts per minute and address that are answered 401; further ones are answered 429."""

_DUMMY_KEY = b"\0" * 32
_DOES_NOT_FIT = (
    "the token or the signature does not fit Secret {secret} in namespace {namespace}: sign "
    "v1, X-Kardinal-Timestamp, Idempotency-Key (or nothing) and the raw body, joined by line feeds, with HMAC-SHA256"
)

_log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Claim:
    """A post for a namespace whose signature is not checked yet; `token` is None if its token is unknown."""

    namespace: str
    credentials: RequestCredentials
    token: Token | None
    allow_unstamped: bool
    address: str


@dataclass(slots=True)
class _Entry:
    credentials: WebhookCredentials
    version: str
    until: float
    failure: KubeError | None = None


class PostAuthenticator:
    """Authenticate posts of CI with Secrets `kardinal-webhook`. `knows`: whether a namespace has a Pipeline."""

    def __init__(self, client: Client, *, clock: Clock, recorder: EventRecorder, knows: Callable[[str], bool]) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._knows = knows
        self._known: OrderedDict[str, _Entry] = OrderedDict()
        self._guessed: OrderedDict[str, _Entry] = OrderedDict()
        self._guesses = RateLimit(limit=GUESSES, window=60.0, clock=clock)
        self._failures = RateLimit(limit=ATTEMPTS_PER_MINUTE, window=60.0, clock=clock)
        self._reading: dict[str, asyncio.Task[_Entry]] = {}

    async def stop(self) -> None:
        """Cancel the reads in progress."""
        reading = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)

    async def claim(self, namespace: str, credentials: RequestCredentials, *, address: str | None) -> Claim:
        """Return the claim of a post, after comparing its token with those of the namespace."""
        accepted = await self._credentials(namespace)
        token = accepted.holder(credentials.token, self._clock.now())
        return Claim(namespace, credentials, token, accepted.allow_unstamped, network_of(address))

    def refuse(self, claim: Claim) -> ProblemError:
        """Return the answer for a wrong token or signature: 401, or 429 after too many attempts."""
        wait = self._failures.admit(claim.address) if claim.token is None else 0
        if wait:
            return ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many failed attempts from this address; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        return unauthorized(_DOES_NOT_FIT.format(secret=WEBHOOK_SECRET, namespace=claim.namespace))

    def authenticate(self, claim: Claim, body: bytes) -> Token:
        """Return the token of a post with a valid, recent signature over `body`; raises `ProblemError` 401, 429."""
        key = claim.token.hmac_key if claim.token is not None else _DUMMY_KEY
        if not claim.credentials.is_signed_with(key, body) or claim.token is None:
            raise self.refuse(claim)
        if claim.credentials.timestamp is None:
            if not claim.allow_unstamped:
                raise unauthorized(
                    "the signature covers the body alone: send X-Kardinal-Timestamp and sign it too, or set "
                    f'allowUnstamped: "true" in Secret {WEBHOOK_SECRET} until every client does'
                )
        elif not claim.credentials.is_current(self._clock.now()):
            raise unauthorized(
                f"X-Kardinal-Timestamp must be in seconds since 1970 and within {TOLERANCE:.0f} s of "
                f"{int(self._clock.now().timestamp())}: sign the request when it is sent"
            )
        return claim.token

    async def _credentials(self, namespace: str) -> WebhookCredentials:
        known = self._knows(namespace)
        cache = self._known if known else self._guessed
        entry = cache.get(namespace)
        if entry is None or entry.until <= self._clock.monotonic():
            if not known and self._guesses.admit(""):
                return NO_CREDENTIALS
            entry = await self._read_once(namespace, entry)
            cache[namespace] = entry
            cache.move_to_end(namespace)
            self._trim()
        if entry.failure is not None:
            raise entry.failure
        return entry.credentials

    def _trim(self) -> None:
        while len(self._guessed) > GUESSED:
            self._guessed.popitem(last=False)
        # The least recently read entry, most often of a namespace whose last Pipeline was deleted.
        while self._known and not self._knows(next(iter(self._known))):
            self._known.popitem(last=False)

    async def _read_once(self, namespace: str, before: _Entry | None) -> _Entry:
        """Read the Secret once for all requests that wait for it."""
        task = self._reading.get(namespace)
        if task is None:
            task = asyncio.create_task(self._read(namespace, before))
            self._reading[namespace] = task
            task.add_done_callback(lambda _: self._reading.pop(namespace, None))
        return await asyncio.shield(task)

    async def _read(self, namespace: str, before: _Entry | None) -> _Entry:
        try:
            secret = await self._client.get(SECRET, WEBHOOK_SECRET, namespace)
        except NotFound:
            return _Entry(NO_CREDENTIALS, "", self._clock.monotonic() + LIFETIME)
        except Forbidden as error:
            self._report_forbidden(namespace, error)
            return _Entry(NO_CREDENTIALS, "", self._clock.monotonic() + LIFETIME)
        except KubeError as error:
            return _Entry(NO_CREDENTIALS, "", self._clock.monotonic() + PAUSE, error)
        version = secret["metadata"]["resourceVersion"]
        until = self._clock.monotonic() + LIFETIME
        if before is not None and before.version == version:
            return _Entry(before.credentials, version, until)
        credentials = await asyncio.to_thread(read_credentials, secret)
        self._report(secret, credentials)
        return _Entry(credentials, version, until)

    def _report(self, secret: JsonObject, credentials: WebhookCredentials) -> None:
        """Report the unusable parts of a Secret in the log and in an Event on it."""
        if not credentials.faults:
            return
        note = "; ".join(credentials.faults)
        _log.warning("tokens of the webhook are not used", namespace=secret["metadata"]["namespace"], faults=note)
        self._recorder.event(
            secret, type="Warning", reason="InvalidTokens", note=f"no token of tokens.yaml is accepted: {note}"
        )

    def _report_forbidden(self, namespace: str, error: Forbidden) -> None:
        if self._knows(namespace):
            _log.warning(
                "the Secret of the webhook may not be read: give the controller `get` on it",
                namespace=namespace,
                secret=WEBHOOK_SECRET,
                error=str(error),
            )


def unauthorized(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})
