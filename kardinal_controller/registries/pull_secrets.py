"""Read pull Secrets, and decide to which hosts their logins may be sent.

A Secret itself says that it is for registries (label `kardinal.io/credentials: registry`) and for which hosts
(annotation `kardinal.io/hosts`), like a Secret for Git (`kardinal.git.secret_hosts`). A registry chooses its token
service, which receives the login as well, so the Secret must name that host, too, for example
`kardinal.io/hosts: docker.io,auth.docker.io`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kardinal.bounded import JsonLimits, NotJson, OverLimit, decode
from kardinal.git.secret_hosts import refused_host
from kardinal.kube import Client, Forbidden, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.secret_purposes import CREDENTIALS_REGISTRY
from kardinal.objects.secrets import SecretValueError, secret_text
from kardinal_controller.registries.errors import RegistryError

__all__ = ["Logins", "PullSecrets", "read_logins"]

_TYPE = "kubernetes.io/dockerconfigjson"
_KEY = ".dockerconfigjson"
_LOGINS = JsonLimits(size=1 << 20, depth=8, containers=5_000, pieces=50_000)


@dataclass(frozen=True, slots=True)
class Logins:
    """The logins of a Secret by registry, as `user:password`."""

    secret: JsonObject = field(repr=False)
    by_registry: Mapping[str, str] = field(repr=False)

    def authorization(self, registry: str, *, sent_to: str) -> str | None:
        """Return the Authorization header for a registry; None if the Secret has no login for it.

        Raises `RegistryError` if the Secret does not name the registry, or the host `sent_to`.
        """
        login = self.by_registry.get(registry)
        if login is None:
            return None
        for host in dict.fromkeys((registry, sent_to)):
            if refusal := refused_host(self.secret, host, purpose=CREDENTIALS_REGISTRY):
                raise RegistryError(f"spec.pullSecretRef: {refusal}")
        return f"Basic {base64.b64encode(login.encode()).decode()}"


def read_logins(secret: JsonObject) -> Logins:
    """Return the logins of a pull Secret. Raises `RegistryError`."""
    metadata = secret["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    wrong = RegistryError(f"spec.pullSecretRef: Secret {name} is not of type {_TYPE}, or cannot be read as such")
    try:
        text = secret_text(secret, _KEY)
        document = decode(text.encode(), _LOGINS) if text else None
    except (SecretValueError, OverLimit, NotJson):
        raise wrong from None
    auths = document.get("auths") if isinstance(document, dict) else None
    if not isinstance(auths, dict):
        raise wrong
    found = ((_registry(key), _login(entry)) for key, entry in auths.items())
    return Logins(secret, {registry: login for registry, login in found if registry and login})


class PullSecrets:
    """Read pull Secrets from the API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self, name: str, namespace: str) -> Logins:
        """Return the logins of a Secret. Raises `RegistryError`."""
        try:
            return read_logins(await self._client.get(SECRET, name, namespace))
        except NotFound:
            raise RegistryError(f"spec.pullSecretRef: Secret {namespace}/{name} does not exist") from None
        except Forbidden:
            raise RegistryError(
                f"spec.pullSecretRef: Secret {namespace}/{name} may not be read by the controller",
                remedy=f"Apply deploy/secrets/namespace.yaml to namespace {namespace}, with {name} among the names "
                "of its Role",
            ) from None


def _registry(key: str) -> str:
    """Return the registry for a key of `auths`: `docker.io` for `https://index.docker.io/v1/`."""
    host = key.removeprefix("https://").removeprefix("http://").partition("/")[0]
    try:
        return ImageReference.parse(f"{host}/x").canonical.partition("/")[0]
    except ImageReferenceError:
        return ""


def _login(entry: Any) -> str:
    """Return `user:password` of an entry of `auths`; empty if it has none."""
    if not isinstance(entry, dict):
        return ""
    user, password, auth = (entry.get(key) for key in ("username", "password", "auth"))
    if isinstance(user, str) and isinstance(password, str) and user and password:
        return f"{user}:{password}"
    if not isinstance(auth, str):
        return ""
    try:
        login = base64.b64decode(auth, validate=True).decode()
    except ValueError:
        return ""
    return login if ":" in login else ""
