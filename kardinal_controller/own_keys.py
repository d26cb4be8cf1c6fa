"""The controller's own keys, each in a Secret of its namespace: of attestations, and of sessions of the web page.

A key is created by the first process that finds none, and all replicas use it.
"""

from __future__ import annotations

import asyncio
import base64
import secrets

from kardinal.kube import AlreadyExists, Backoff, Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secrets import SecretValueError, secret_value
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER
from kardinal.runtime.errors import RuntimeFailure

__all__ = ["own_key"]

KEY = "key"
KEY_BYTES = 32
TRIES = 10
RETRY = Backoff(base=0.2, cap=5.0)


async def own_key(client: Client, name: str, *, namespace: str) -> bytes:
    """Return the key in a Secret, and create it if there is none. Raises `RuntimeFailure` with a remedy."""
    for failures in range(TRIES):
        try:
            return await _read(client, name, namespace)
        except (Forbidden, NotFound) as error:
            raise RuntimeFailure(
                f"Secret {namespace}/{name} cannot be read or created: {error}. "
                "Create the namespace and apply deploy/controller-rbac.yaml"
            ) from error
        except KubeError as error:
            if failures == TRIES - 1:
                raise RuntimeFailure(f"Secret {namespace}/{name}: {error}") from error
            # Real time, because the delay is for the network.
            await asyncio.sleep(RETRY.delay(failures))
    raise AssertionError("the last try returns or raises")


async def _read(client: Client, name: str, namespace: str) -> bytes:
    try:
        stored = await client.get(SECRET, name, namespace)
    except NotFound:
        stored = await _create(client, name, namespace)
    try:
        key = secret_value(stored, KEY)
    except SecretValueError as error:
        raise RuntimeFailure(f"{error}: delete the Secret, and the next start makes another key") from None
    if len(key) < KEY_BYTES:
        raise RuntimeFailure(
            f"key {KEY} of Secret {namespace}/{name} has less than {KEY_BYTES} bytes: "
            "delete the Secret, and the next start makes another key"
        )
    return key


async def _create(client: Client, name: str, namespace: str) -> JsonObject:
    manifest = {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {"name": name, "namespace": namespace},
        "type": "Opaque",
        "data": {KEY: base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()},
    }
    try:
        return await client.create(SECRET, manifest, field_manager=FIELD_MANAGER_CONTROLLER)
    except AlreadyExists:
        return await client.get(SECRET, name, namespace)
