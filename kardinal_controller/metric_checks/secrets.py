"""Read the credentials for metric servers.

A Secret itself says that it is for metrics (label `kardinal.io/credentials: metrics`) and for which hosts (annotation
`kardinal.io/hosts`), like a Secret for Git (`kardinal.git.secret_hosts`). Its keys, all optional:

    token                bearer token
    username, password   basic authentication
    ca.crt               the certificate authorities that the server is trusted by, in PEM, instead of the machine's
    headers              a header on each line, such as `X-Scope-OrgID: team-a`
"""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from kardinal.clock import Clock
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, JsonObject, Key
from kardinal.objects.secret_purposes import CREDENTIALS_METRICS
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal.promotion.metrics.provider import MetricError

__all__ = ["NO_CREDENTIALS", "MetricCredentials", "MetricSecrets", "SecretRefused"]

KEPT = 30.0
"""The time in seconds for which a Secret is not read again; many checks share one."""

_SHORTEST_HIDDEN = 6
"""The fewest characters of a credential that is removed from texts; a shorter one would match ordinary words."""
_MOST_HEADERS = 16
_HEADER = re.compile(r"([A-Za-z0-9-]{1,64}):[ \t]*+([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*")
_OWN_HEADERS = frozenset(
    [
        "accept",
        "accept-encoding",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    ]
)
"""Headers that the request has by itself; Authorization is the token's."""


class SecretRefused(MetricError):
    """The Secret of a check does not exist, must not be sent to its server, or has values of another form."""


@dataclass(frozen=True, slots=True)
class MetricCredentials:
    """The values of a Secret for a request to a server."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    hidden: tuple[str, ...] = field(default=(), repr=False)
    """The texts that must not appear in a status, an Event or a log."""

    def redacted(self, content: bytes) -> bytes:
        """Return a text without the values of the Secret, such as an answer that repeats them."""
        for secret in self.hidden:
            content = content.replace(secret.encode(), b"***")
        return content


NO_CREDENTIALS = MetricCredentials()


class MetricSecrets:
    """Reads Secrets from the API server, and keeps what they hold for `KEPT` seconds."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known: dict[tuple[Key, str], tuple[float, MetricCredentials]] = {}

    async def read(self, secret: Key, *, host: str) -> MetricCredentials:
        """Return the credentials for `host` (`host[:port]`). Raises `SecretRefused`."""
        now = self._clock.monotonic()
        self._known = {key: known for key, known in self._known.items() if known[0] > now}
        known = self._known.get((secret, host))
        if known is None:
            known = (now + KEPT, _credentials(await self._get(secret), host))
            self._known[secret, host] = known
        return known[1]

    async def _get(self, secret: Key) -> JsonObject:
        try:
            return await self._client.get(SECRET, secret.name, secret.namespace)
        except NotFound:
            raise SecretRefused(f"spec.provider.secretRef: Secret {secret} does not exist") from None
        except Forbidden:
            raise SecretRefused(
                f"spec.provider.secretRef: Secret {secret} may not be read by the controller",
                remedy=f"Apply deploy/secrets/namespace.yaml to namespace {secret.namespace}, with {secret.name} among "
                "the names of its Role",
            ) from None


def _credentials(secret: JsonObject, host: str) -> MetricCredentials:
    if refusal := refused_host(secret, host, purpose=CREDENTIALS_METRICS):
        raise SecretRefused(f"spec.provider.secretRef: {refusal}")
    try:
        values = {key: secret_text(secret, key).strip("\r\n") for key in _KEYS}
    except SecretValueError as error:
        raise SecretRefused(f"spec.provider.secretRef: {error}") from None
    found = dict(_headers(values["headers"], secret))
    token = values["token"]
    login = f"{values['username']}:{values['password']}"
    if token and login != ":":
        raise _unusable(secret, "has a token, and a username or a password: leave one of them out")
    if not f"{token}{login}".isascii() or not f"{token}{login}".isprintable():
        raise _unusable(secret, "has a token, username or password that is not printable ASCII")
    basic = base64.b64encode(login.encode()).decode()
    if token:
        found["Authorization"] = f"Bearer {token}"
    elif login != ":":
        found["Authorization"] = f"Basic {basic}"
    hidden = (token, values["password"], basic, *found.values())
    return MetricCredentials(
        headers=found,
        tls=_trusted(values["ca.crt"], secret) if values["ca.crt"] else None,
        hidden=tuple(sorted({each for each in hidden if len(each) >= _SHORTEST_HIDDEN}, key=len, reverse=True)),
    )


_KEYS = ("token", "username", "password", "ca.crt", "headers")


def _headers(text: str, secret: JsonObject) -> Mapping[str, str]:
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_HEADER.fullmatch(line) for line in lines]
    if len(lines) > _MOST_HEADERS or None in found:
        raise _unusable(secret, f"has other headers than up to {_MOST_HEADERS} lines such as X-Scope-OrgID: team-a")
    headers = {each[1]: each[2] for each in found if each is not None}
    if own := sorted(_OWN_HEADERS & {name.lower() for name in headers}):
        raise _unusable(secret, f"sets the header {own[0]}, which kardinal sets itself")
    return headers


def _trusted(certificates: str, secret: JsonObject) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=certificates)
    except (ssl.SSLError, ValueError):
        raise _unusable(secret, "has a ca.crt that is no certificate in PEM") from None


def _unusable(secret: JsonObject, problem: str) -> SecretRefused:
    metadata = secret["metadata"]
    return SecretRefused(f"spec.provider.secretRef: Secret {metadata['namespace']}/{metadata['name']} {problem}")
