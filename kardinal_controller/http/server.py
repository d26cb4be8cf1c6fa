"""The HTTP server of the control plane.

A request is trusted in this order: its size, the presence of credentials, its shape, the credentials themselves against
the Secret of the namespace it names, and only then whether the Pipeline exists: who cannot authenticate learns nothing
about what is there. The server keeps nothing between requests but the admission times of the rate limit; idempotency
lives in the name and an annotation of the Bundle it created.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web

from kardinal.api import BUNDLE, Pipeline
from kardinal.api.names import (
    ANNOTATION_IDEMPOTENCY_BODY,
    FIELD_MANAGER_CONTROLLER,
    WEBHOOK_SECRET,
    bundle_name,
)
from kardinal.api.new_bundle import NewBundle
from kardinal.kube import AlreadyExists, Client, Invalid, KubeError, NotFound, create_first_free
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.naming import short_hash
from kardinal.objects.secrets import SecretValueError, secret_value
from kardinal.runtime.clock import Clock
from kardinal.runtime.http import listen
from kardinal.runtime.informer import Informer
from kardinal.runtime.logging import get_logger
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.rate import RateLimit
from kardinal_controller.http.request import check_against, parse_request

__all__ = ["ApiServer"]

BODY_LIMIT = 1024 * 1024
"""Bytes of a request body that are read; more is answered 413."""
BODY_DEADLINE = 30.0
"""Seconds a client may take to send its body."""
POSTS_PER_MINUTE = 100
"""Bundles a minute per Pipeline; more are answered 429."""

_log = get_logger(__name__)


class ApiServer:
    """`POST /api/v1/bundles` on `address` (`host:port`, port 0 takes a free one). A runnable of the manager."""

    def __init__(self, client: Client, pipelines: Informer, *, clock: Clock, address: str) -> None:
        self._client = client
        self._pipelines = pipelines
        self._clock = clock
        self._address = address
        self._rate = RateLimit(limit=POSTS_PER_MINUTE, window=60.0, clock=clock)
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self) -> None:
        app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_problems])
        app.router.add_post("/api/v1/bundles", self._create_bundle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
        await runner.setup()
        self._runner = runner
        self.url = await listen(runner, self._address)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _create_bundle(self, http: web.Request) -> web.Response:
        body = await _read_body(http)
        token, signature = _credentials(http)
        request = parse_request(body)
        await self._authenticate(request.namespace, token=token, signature=signature, body=body)
        stored = self._pipelines.get(request.namespace, request.pipeline)
        if stored is None:
            raise ProblemError(
                HTTPStatus.NOT_FOUND,
                f"there is no Pipeline {request.pipeline} in namespace {request.namespace}; "
                'set "namespace" in the body when it lives elsewhere',
            )
        check_against(request, Pipeline.model_validate(stored))
        if wait := self._rate.admit((request.namespace, request.pipeline)):
            raise ProblemError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Pipeline {request.pipeline} takes {POSTS_PER_MINUTE} Bundles a minute; try again in {wait} s",
                headers={"Retry-After": str(wait)},
            )
        key = http.headers.get("Idempotency-Key", "")
        bundle = request.bundle()
        name = await (self._create_once(bundle, key, body) if key else self._create(bundle))
        return web.Response(
            status=HTTPStatus.CREATED.value,
            body=orjson.dumps({"name": name, "namespace": request.namespace}),
            content_type="application/json",
        )

    async def _authenticate(self, namespace: str, *, token: str, signature: str, body: bytes) -> None:
        try:
            secret = await self._client.get(SECRET, WEBHOOK_SECRET, namespace)
        except NotFound:
            secret = {}
        wanted_token, key = _credential(secret, "token"), _credential(secret, "hmacKey")
        wanted_signature = hmac.new(key, body, hashlib.sha256).hexdigest().encode()
        token_fits = hmac.compare_digest(token.encode(), wanted_token)
        signature_fits = hmac.compare_digest(signature.encode(), wanted_signature)
        if not (wanted_token and key and token_fits and signature_fits):
            raise _unauthorized(
                f"the token or the signature does not fit Secret {WEBHOOK_SECRET} (keys token, hmacKey) "
                f"in namespace {namespace}; sign the raw body with HMAC-SHA256"
            )

    async def _create(self, bundle: NewBundle) -> str:
        manifests = bundle.manifests(now=self._clock.now())
        created = await create_first_free(self._client, BUNDLE, manifests, field_manager=FIELD_MANAGER_CONTROLLER)
        if created is not None:
            return str(created["metadata"]["name"])
        raise ProblemError(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too many Bundles of this version in one second; try again",
            headers={"Retry-After": "1"},
        )

    async def _create_once(self, bundle: NewBundle, key: str, body: bytes) -> str:
        """Return the name is made of the key alone.

        The same key can never create a second Bundle, whatever it carries.
        """
        name = bundle_name(bundle.pipeline, "", short_hash(f"{bundle.pipeline}/{key}"))
        digest = hashlib.sha256(body).hexdigest()
        manifest = bundle.manifest(name, annotations={ANNOTATION_IDEMPOTENCY_BODY: digest})
        try:
            await self._client.create(BUNDLE, manifest, field_manager=FIELD_MANAGER_CONTROLLER)
        except AlreadyExists:
            existing = await self._client.get(BUNDLE, name, bundle.namespace)
            if existing["metadata"].get("annotations", {}).get(ANNOTATION_IDEMPOTENCY_BODY) != digest:
                raise ProblemError(
                    HTTPStatus.CONFLICT,
                    f"this Idempotency-Key made Bundle {name} from another body; use a new key for a new Bundle",
                ) from None
        return name


async def _read_body(http: web.Request) -> bytes:
    too_large = ProblemError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {BODY_LIMIT} bytes")
    if (http.content_length or 0) > BODY_LIMIT:
        raise too_large
    try:
        async with asyncio.timeout(BODY_DEADLINE):
            return await http.read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
    except TimeoutError:
        raise ProblemError(
            HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {BODY_DEADLINE:.0f} s"
        ) from None


def _credentials(http: web.Request) -> tuple[str, str]:
    scheme, _, token = http.headers.get("Authorization", "").partition(" ")
    algorithm, _, signature = http.headers.get("X-Kardinal-Signature-256", "").partition("=")
    if scheme.lower() != "bearer" or not token or algorithm.lower() != "sha256" or not signature:
        raise _unauthorized(
            "send Authorization: Bearer <token> and X-Kardinal-Signature-256: sha256=<hex HMAC-SHA256 of the raw body>"
        )
    return token.strip(), signature.strip().lower()


def _credential(secret: JsonObject, key: str) -> bytes:
    """Return a value of the Secret; empty, which authenticates no request, where it cannot be read."""
    try:
        return secret_value(secret, key).strip()
    except SecretValueError:
        return b""


def _unauthorized(detail: str) -> ProblemError:
    return ProblemError(HTTPStatus.UNAUTHORIZED, detail, headers={"WWW-Authenticate": "Bearer"})


@web.middleware
async def _problems(request: web.Request, handler: Any) -> web.StreamResponse:
    """Turn every answer other than success into a problem document."""
    try:
        response: web.StreamResponse = await handler(request)
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
    return response


def _allow(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
