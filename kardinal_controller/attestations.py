"""The controller's own key, and the attestations that it writes and verifies under it.

The key is a Secret in the controller's namespace, made by the first process that finds none. All replicas use the one
that was created first. Deleting the Secret ends every attestation; the next start makes another key.
"""

from __future__ import annotations

import asyncio
import base64
import secrets
from datetime import datetime

from kardinal.api import Bundle
from kardinal.api.names import ANNOTATION_ATTESTATION, ATTESTATION_SECRET, FIELD_MANAGER_CONTROLLER
from kardinal.kube import AlreadyExists, Backoff, Client, Forbidden, KubeError, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secrets import SecretValueError, secret_value
from kardinal.policy.attestation import NOT_ATTESTED, Attestation, Attestor, Scope
from kardinal.runtime.errors import RuntimeFailure

__all__ = ["Attestations"]

KEY = "key"
KEY_BYTES = 32
TRIES = 10
RETRY = Backoff(base=0.2, cap=5.0)


class Attestations:
    """A runnable of the manager: once it has started, it attests and verifies without waiting."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._attestor: Attestor | None = None

    async def start(self) -> None:
        """Read the key, or create it. Raises `RuntimeFailure`, which says what to do."""
        for failures in range(TRIES):
            try:
                self._attestor = Attestor(await self._key())
            except (Forbidden, NotFound) as error:
                raise RuntimeFailure(
                    f"Secret {self._namespace}/{ATTESTATION_SECRET} cannot be read or created: {error}. "
                    "Create the namespace and apply deploy/controller-rbac.yaml"
                ) from error
            except KubeError as error:
                if failures == TRIES - 1:
                    raise RuntimeFailure(f"Secret {self._namespace}/{ATTESTATION_SECRET}: {error}") from error
                # The network's time, not that of promotions.
                await asyncio.sleep(RETRY.delay(failures))
            else:
                return

    async def stop(self) -> None:
        """Keep the key: what is still under way may ask."""

    def attest(self, bundle: Bundle, scope: Scope, *, now: datetime) -> str:
        """Return the annotation that attests the scope of the token that `bundle` is posted with."""
        return self._loaded().attest(bundle, scope, now=now)

    def verify(self, bundle: Bundle) -> Attestation:
        """Return what is attested of a Bundle; of one without an attestation, that needs no key."""
        attested = ANNOTATION_ATTESTATION in bundle.metadata.annotations
        return self._loaded().verify(bundle) if attested else NOT_ATTESTED

    def _loaded(self) -> Attestor:
        if self._attestor is None:
            raise RuntimeError("attestations are asked for before the program has started")
        return self._attestor

    async def _key(self) -> bytes:
        try:
            stored = await self._client.get(SECRET, ATTESTATION_SECRET, self._namespace)
        except NotFound:
            stored = await self._create()
        try:
            key = secret_value(stored, KEY)
        except SecretValueError as error:
            raise RuntimeFailure(f"{error}: delete the Secret, and the next start makes another key") from None
        if len(key) < KEY_BYTES:
            raise RuntimeFailure(
                f"key {KEY} of Secret {self._namespace}/{ATTESTATION_SECRET} has less than {KEY_BYTES} bytes: "
                "delete the Secret, and the next start makes another key"
            )
        return key

    async def _create(self) -> JsonObject:
        manifest = {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"name": ATTESTATION_SECRET, "namespace": self._namespace},
            "type": "Opaque",
            "data": {KEY: base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()},
        }
        try:
            return await self._client.create(SECRET, manifest, field_manager=FIELD_MANAGER_CONTROLLER)
        except AlreadyExists:
            return await self._client.get(SECRET, ATTESTATION_SECRET, self._namespace)
