"""Creation of Bundles: one per delivery, however often it arrives.

The name of a Bundle is a hash of its Pipeline, its sender's token and the identity of the delivery, so that the API
server refuses a second one. A Bundle can be deleted, though, while a recorded request is still young enough to be sent
again; so for as long as a signature is accepted, the deliveries that carried it are remembered here as well.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from http import HTTPStatus

from kardinal.api import BUNDLE, Bundle
from kardinal.api.image import bundle_title
from kardinal.api.names import (
    ANNOTATION_ATTESTATION,
    ANNOTATION_IDEMPOTENCY_BODY,
    FIELD_MANAGER_CONTROLLER,
    bundle_name,
)
from kardinal.api.new_bundle import NewBundle
from kardinal.kube import AlreadyExists, Client
from kardinal.objects import JsonObject
from kardinal.objects.naming import long_hash
from kardinal.policy.attestation import Scope
from kardinal.runtime.clock import Clock
from kardinal.runtime.recorder import EventRecorder
from kardinal_controller.attestations import Attestations
from kardinal_controller.http.authentication import Claim
from kardinal_controller.http.credentials import Token
from kardinal_controller.http.delivery import TOLERANCE
from kardinal_controller.http.problem import ProblemError

__all__ = ["Creator"]

REMEMBERED = 10_000
"""Deliveries of one namespace that are remembered."""
SWEEP = 60.0
"""Seconds between two looks for deliveries that are too old to be accepted again."""


class Creator:
    """Creates the Bundles of deliveries that have been authenticated."""

    def __init__(self, client: Client, *, clock: Clock, recorder: EventRecorder, attestations: Attestations) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._attestations = attestations
        self._delivered = _Delivered(clock)

    def made_by(self, claim: Claim) -> str | None:
        """Return the Bundle that this very request has made before, as far as it is remembered."""
        return self._delivered.name(claim.namespace, claim.delivery.signature)

    async def create(self, bundle: NewBundle, claim: Claim, token: Token, body: bytes) -> str:
        """Return the name of the Bundle of a delivery. Raises `ProblemError` 409, `KubeError`."""
        delivery = claim.delivery
        wanted = self._manifest(bundle, claim, token, body)
        try:
            created = await self._client.create(BUNDLE, wanted, field_manager=FIELD_MANAGER_CONTROLLER)
        except AlreadyExists:
            name = str(wanted["metadata"]["name"])
            if not _same(await self._client.get(BUNDLE, name, bundle.namespace), wanted):
                raise ProblemError(
                    HTTPStatus.CONFLICT,
                    f"there is a Bundle {name} already, which another body has made; "
                    "use a new Idempotency-Key for a new Bundle",
                ) from None
        else:
            name = str(created["metadata"]["name"])
            if delivery.timestamp is None:
                self._recorder.event(
                    created,
                    type="Warning",
                    reason="UnstampedSignature",
                    note="the request was signed without X-Kardinal-Timestamp, which who recorded it can send again: "
                    "sign the time and remove allowUnstamped from Secret kardinal-webhook",
                )
        self._delivered.add(claim.namespace, delivery.signature, name, signed_at=delivery.signed_at())
        return name

    def _manifest(self, bundle: NewBundle, claim: Claim, token: Token, body: bytes) -> JsonObject:
        delivery = claim.delivery
        named = delivery.key and delivery.timestamp is not None
        identity = long_hash("\0".join((bundle.pipeline, token.name, delivery.identity)))
        # The same key must give the same name, whatever version it carries.
        name = bundle_name(bundle.pipeline, "" if named else bundle_title(bundle.artifacts), identity)
        annotations = {ANNOTATION_IDEMPOTENCY_BODY: hashlib.sha256(body).hexdigest()}
        manifest = bundle.manifest(name, annotations=annotations)
        scope = Scope(token.name, token.skippable(bundle.intent.skip))
        attestation = self._attestations.attest(Bundle.model_validate(manifest), scope, now=self._clock.now())
        return bundle.manifest(name, annotations={**annotations, ANNOTATION_ATTESTATION: attestation})


def _same(existing: JsonObject, wanted: JsonObject) -> bool:
    """Return whether a Bundle is the one that the same request has made: neither edited nor made by other means."""
    annotations = existing["metadata"].get("annotations", {})
    before, after = Bundle.model_validate(existing), Bundle.model_validate(wanted)
    return (
        annotations.get(ANNOTATION_IDEMPOTENCY_BODY) == wanted["metadata"]["annotations"][ANNOTATION_IDEMPOTENCY_BODY]
        and before.spec.type == after.spec.type
        and before.spec.artifacts == after.spec.artifacts
        and before.spec.provenance == after.spec.provenance
    )


class _Delivered:
    """The signatures that have made a Bundle and would still be accepted, by namespace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._names: dict[str, OrderedDict[bytes, tuple[float, str]]] = {}
        self._sweep_at = 0.0

    def name(self, namespace: str, signature: bytes) -> str | None:
        found = self._names.get(namespace, OrderedDict()).get(signature)
        return found[1] if found is not None else None

    def add(self, namespace: str, signature: bytes, name: str, *, signed_at: int | None) -> None:
        now = self._clock.now().timestamp()
        if now >= self._sweep_at:
            self._sweep(now)
        names = self._names.setdefault(namespace, OrderedDict())
        names[signature] = ((now if signed_at is None else signed_at) + TOLERANCE, name)
        if len(names) > REMEMBERED:
            # Only the own deliveries of a namespace can push others out.
            names.popitem(last=False)

    def _sweep(self, now: float) -> None:
        self._sweep_at = now + SWEEP
        for namespace, names in list(self._names.items()):
            for signature in [signature for signature, (until, _) in names.items() if until < now]:
                del names[signature]
            if not names:
                del self._names[namespace]
