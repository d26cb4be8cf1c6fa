"""CI as the webhook sees it: requests that are signed, sent, recorded and sent again."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Any

import aiohttp
import orjson

from kardinal.clock import Clock
from kardinal.promotion.api.signature import IDEMPOTENCY_KEY, SIGNATURE, TIMESTAMP, signature, signed_text
from tests.support.names import TEAM
from tests.support.secret_values import secret_value

__all__ = ["HMAC_KEY", "TOKEN", "Answer", "Ci", "Delivery", "body_of", "sign", "token_entry", "webhook_secret"]

TOKEN = secret_value("token")
HMAC_KEY = secret_value("key")


@dataclass(frozen=True)
class Delivery:
    """A request as it goes over the network."""

    path: str
    headers: dict[str, str]
    body: bytes

    def under(self, key: str) -> Delivery:
        """Return it with another Idempotency-Key and the signature it has."""
        return replace(self, headers={**self.headers, IDEMPOTENCY_KEY: key})

    def without(self, header: str) -> Delivery:
        return replace(self, headers={name: value for name, value in self.headers.items() if name != header})


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: Any
    size: int


def sign(
    body: bytes,
    *,
    clock: Clock,
    token: str | None = TOKEN,
    key: str | None = HMAC_KEY,
    idempotency_key: str = "",
    age: float = 0,
) -> dict[str, str]:
    """Return the headers of a delivery that was signed `age` seconds ago; None leaves a credential out."""
    stamp = str(int(clock.now().timestamp() - age))
    headers = {TIMESTAMP: stamp}
    if idempotency_key:
        headers[IDEMPOTENCY_KEY] = idempotency_key
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    if key is not None:
        text = signed_text(body, timestamp=stamp.encode(), key=idempotency_key.encode())
        headers[SIGNATURE] = f"sha256={signature(key.encode(), text)}"
    return headers


class Ci:
    """A CI job with one set of credentials."""

    def __init__(
        self, url: str, session: aiohttp.ClientSession, clock: Clock, *, token: str = TOKEN, key: str = HMAC_KEY
    ) -> None:
        self.url = url
        self.session = session
        self.clock = clock
        self.token = token
        self.key = key

    def signed(self, body: Any, *, path: str = "/api/v1/bundles", **options: Any) -> Delivery:
        """Return a delivery; `options` are those of `sign`."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = sign(raw, clock=self.clock, **{"token": self.token, "key": self.key, **options})
        return Delivery(path, headers, raw)

    def unstamped(self, body: Any, *, idempotency_key: str = "") -> Delivery:
        """Return a delivery whose signature covers the body alone."""
        raw = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = {
            "Authorization": f"Bearer {self.token}",
            SIGNATURE: "sha256=" + hmac.new(self.key.encode(), raw, hashlib.sha256).hexdigest(),
        }
        if idempotency_key:
            headers[IDEMPOTENCY_KEY] = idempotency_key
        return Delivery("/api/v1/bundles", headers, raw)

    async def send(self, delivery: Delivery) -> Answer:
        async with self.session.post(
            f"{self.url}{delivery.path}", data=delivery.body, headers=delivery.headers
        ) as response:
            content = await response.read()
            parsed = orjson.loads(content) if "json" in response.content_type else content
            return Answer(response.status, dict(response.headers), parsed, len(content))

    async def post(self, body: Any, **options: Any) -> Answer:
        return await self.send(self.signed(body, **options))


def body_of(*, pipeline: str = "my-app", tag: str = "1.2.3", **fields: Any) -> dict[str, Any]:
    """Return the body of a request for one image, in the namespace of the team."""
    images = [{"name": "my-app", "reference": f"ghcr.io/acme/my-app:{tag}"}]
    return {"namespace": TEAM, "pipeline": pipeline, "artifacts": {"images": images}, **fields}


def webhook_secret(*, namespace: str = TEAM, token: str = TOKEN, key: str = HMAC_KEY, **data: str) -> dict[str, Any]:
    """Return the Secret of the webhook; `data` are further keys, with `_` for a dot."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "kardinal-webhook", "namespace": namespace},
        "stringData": {"token": token, "hmacKey": key, **{name.replace("_", "."): text for name, text in data.items()}},
    }


def token_entry(name: str, *, token: str, key: str, **fields: Any) -> dict[str, Any]:
    """Return an entry of tokens.yaml."""
    return {"name": name, "hash": hashlib.sha256(token.encode()).hexdigest(), "hmacKey": key, **fields}
