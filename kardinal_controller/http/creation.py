"""Create Bundles: one per post, however often the post arrives.

The name of a Bundle, for example `web-1-2-3-fvyrmqvxe2yeialcpsu7xlbs6u`, ends in a hash of its Pipeline, the sender's
token and the identity of the post, so that the API server refuses a second one. But a Bundle can be deleted while a
recorded request is still recent enough to be repeated. So the posts that created a Bundle are also remembered here
for as long as their signature is accepted.
"""

from __future__ import annotations

from collections import OrderedDict
from http import HTTPStatus

from kardinal.clock import Clock
from kardinal.kube import AlreadyExists, Client
from kardinal.objects import JsonObject
from kardinal.objects.naming import long_hash
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import bundle_title
from kardinal.promotion.api.names import (
    ANNOTATION_ATTESTATION,
    ANNOTATION_IDEMPOTENCY_BODY,
    FIELD_MANAGER_CONTROLLER,
    bundle_name,
)
from kardinal.promotion.api.new_bundle import NewBundle
from kardinal.promotion.kinds import BUNDLE
from kardinal.promotion.policy.attestation import TokenScope
from kardinal.runtime.recorder import EventRecorder
from kardinal_controller.attestations import Attestations
from kardinal_controller.http.authentication import Claim
from kardinal_controller.http.credentials import Token
from kardinal_controller.http.problem import ProblemError
from kardinal_controller.http.request_credentials import TOLERANCE

__all__ = ["AnsweredPosts", "Creator"]

REMEMBERED = 10_000
"""The most posts for one namespace that are remembered."""
SWEEP = 60.0
"""The interval in seconds at which expired posts are removed."""


class Creator:
    """Creates the Bundles of authenticated posts."""

    def __init__(self, client: Client, *, clock: Clock, recorder: EventRecorder, attestations: Attestations) -> None:
        self._client = client
        self._clock = clock
        self._recorder = recorder
        self._attestations = attestations
        self._answered = AnsweredPosts(clock)

    def made_by(self, claim: Claim) -> str | None:
        """Return the Bundle that this same request has created before, if it is remembered."""
        return self._answered.name(claim.namespace, claim.credentials.signature)

    async def create(self, bundle: NewBundle, claim: Claim, token: Token, body_hash: str) -> str:
        """Create the Bundle of a post and return its name; a repeated post gets the same Bundle.

        Raises `ProblemError` 409 if another body has used the name, and `KubeError`.
        """
        credentials = claim.credentials
        wanted = self._manifest(bundle, claim, token, body_hash)
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
            if credentials.timestamp is None:
                self._recorder.event(
                    created,
                    type="Warning",
                    reason="UnstampedSignature",
                    note="the request was signed without X-Kardinal-Timestamp, which who recorded it can send again: "
                    "sign the time and remove allowUnstamped from Secret kardinal-webhook",
                )
        self._answered.add(claim.namespace, credentials.signature, name, signed_at=credentials.signed_at())
        return name

    def _manifest(self, bundle: NewBundle, claim: Claim, token: Token, body_hash: str) -> JsonObject:
        credentials = claim.credentials
        named = credentials.key and credentials.timestamp is not None
        identity = long_hash("\0".join((bundle.pipeline, token.name, credentials.identity)))
        # The same key must give the same name, whatever the version in the request.
        name = bundle_name(bundle.pipeline, "" if named else bundle_title(bundle.artifacts), identity)
        annotations = {ANNOTATION_IDEMPOTENCY_BODY: body_hash}
        manifest = bundle.manifest(name, annotations=annotations)
        scope = TokenScope(token.name, token.skippable(bundle.intent.skip))
        attestation = self._attestations.attest(Bundle.model_validate(manifest), scope, now=self._clock.now())
        return bundle.manifest(name, annotations={**annotations, ANNOTATION_ATTESTATION: attestation})


def _same(existing: JsonObject, wanted: JsonObject) -> bool:
    """Return whether a Bundle was created by the same request, and was neither edited nor created by other means."""
    annotations = existing["metadata"].get("annotations", {})
    before = Bundle.model_validate(existing)
    after = Bundle.model_validate(wanted)
    return (
        annotations.get(ANNOTATION_IDEMPOTENCY_BODY) == wanted["metadata"]["annotations"][ANNOTATION_IDEMPOTENCY_BODY]
        and before.spec.type == after.spec.type
        and before.spec.artifacts == after.spec.artifacts
        and before.spec.provenance == after.spec.provenance
    )


class AnsweredPosts:
    """The signatures that have created an object and would still be accepted, by namespace."""

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
            # Only other posts for the same namespace can displace a post.
            names.popitem(last=False)

    def _sweep(self, now: float) -> None:
        self._sweep_at = now + SWEEP
        for namespace, names in list(self._names.items()):
            for signature in [signature for signature, (until, _) in names.items() if until < now]:
                del names[signature]
            if not names:
                del self._names[namespace]
