"""Read the credentials for an endpoint from a Secret, if the Secret permits its host.

A Secret for custom steps has the label `kardinal.io/credentials: step`, and names the hosts that it may be sent to, as
Secrets for Git do (`kardinal.git.secret_hosts`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kardinal.git.secret_hosts import refused_host
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_STEP
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal_agent.errors import SecretUnreadable, StepFailed

__all__ = ["NO_CREDENTIALS", "EndpointCredentials", "EndpointSecrets"]

_SHORTEST_HIDDEN = 6
"""The fewest characters of a credential that is removed from texts; a shorter one would match ordinary words."""


@dataclass(frozen=True, slots=True)
class EndpointCredentials:
    """A bearer token and a key for signatures; each is empty if the Secret has none."""

    token: str = field(default="", repr=False)
    hmac_key: str = field(default="", repr=False)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return the texts that must not appear in a status, an Event or a log."""
        return tuple(text for text in (self.token, self.hmac_key) if len(text) >= _SHORTEST_HIDDEN)


NO_CREDENTIALS = EndpointCredentials()


class EndpointSecrets:
    """Reads Secrets from the agent's own cluster; `namespaces` maps namespaces of the control plane to those there."""

    def __init__(self, client: Client, namespaces: Mapping[str, str]) -> None:
        self._client = client
        self._namespaces = namespaces

    async def read(self, name: str, *, namespace: str, host: str) -> EndpointCredentials:
        """Return the credentials for `host`. Raises `StepFailed`, and `SecretUnreadable` if rights are missing."""
        secret = await self._secret(name, self._namespaces.get(namespace, namespace))
        if refusal := refused_host(secret, host, purpose=CREDENTIALS_STEP):
            raise StepFailed("SecretNotForHost", f"config.secretRef: {refusal}")
        try:
            token, key = (secret_text(secret, entry).rstrip("\r\n") for entry in ("token", "hmacKey"))
        except SecretValueError as error:
            raise _unusable(str(error)) from None
        if not token and not key:
            raise _unusable(f"Secret {secret['metadata']['namespace']}/{name} has neither token nor hmacKey")
        if not token.isascii() or not token.isprintable():
            raise _unusable(f"key token of Secret {secret['metadata']['namespace']}/{name} is not printable ASCII")
        return EndpointCredentials(token, key)

    async def _secret(self, name: str, namespace: str) -> JsonObject:
        try:
            return await self._client.get(SECRET, name, namespace)
        except NotFound:
            raise _unusable(f"Secret {namespace}/{name} does not exist") from None
        except Forbidden:
            raise SecretUnreadable(
                f"config.secretRef: Secret {namespace}/{name} may not be read by this agent",
                remedy=f"Apply deploy/agent/secrets/namespace.yaml (for the controller deploy/secrets/namespace.yaml) "
                f"to namespace {namespace}, with {name} among the names of its Role",
            ) from None


def _unusable(message: str) -> StepFailed:
    return StepFailed(
        "SecretUnusable", f"config.secretRef: {message}; create it in the agent's cluster with token, hmacKey or both"
    )
