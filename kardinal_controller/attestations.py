"""The attestations and signatures that the controller writes and verifies under the key in `kardinal-attestation`.

When the Secret is deleted, all of them become invalid, and the next start creates another key.
"""

from __future__ import annotations

from datetime import datetime

from kardinal.kube import Client
from kardinal.promotion.api import Approval, Bundle
from kardinal.promotion.api.names import ANNOTATION_ATTESTATION, ATTESTATION_SECRET
from kardinal.promotion.policy.approvals import ApprovalSigner
from kardinal.promotion.policy.attestation import NOT_ATTESTED, Attestation, Attestor, TokenScope
from kardinal_controller.own_keys import own_key

__all__ = ["Attestations"]


class Attestations:
    """A runnable of the manager. After its start, it attests and verifies without I/O."""

    def __init__(self, client: Client, *, namespace: str) -> None:
        self._client = client
        self._namespace = namespace
        self._attestor: Attestor | None = None
        self._approvals: ApprovalSigner | None = None

    async def start(self) -> None:
        """Read the key, or create it. Raises `RuntimeFailure` with a remedy."""
        key = await own_key(self._client, ATTESTATION_SECRET, namespace=self._namespace)
        self._attestor = Attestor(key)
        self._approvals = ApprovalSigner(key)

    async def stop(self) -> None:
        """Keep the key, because requests in progress may still need it."""

    def attest(self, bundle: Bundle, scope: TokenScope, *, now: datetime) -> str:
        """Return the annotation that attests the scope of the token with which `bundle` is posted."""
        return self._loaded().attest(bundle, scope, now=now)

    def verify(self, bundle: Bundle) -> Attestation:
        """Return the attestation of a Bundle. A Bundle without the annotation needs no key."""
        attested = ANNOTATION_ATTESTATION in bundle.metadata.annotations
        return self._loaded().verify(bundle) if attested else NOT_ATTESTED

    def signature(self, approval: Approval) -> str:
        """Return the signature of an Approval that the controller has created."""
        return self._signer().signature(approval)

    def is_signed(self, approval: Approval) -> bool:
        """Return whether an Approval has the controller's signature. One without any needs no key."""
        return approval.status.signature is not None and self._signer().is_signed(approval)

    def _signer(self) -> ApprovalSigner:
        if self._approvals is None:
            raise RuntimeError("signatures are asked for before the program has started")
        return self._approvals

    def _loaded(self) -> Attestor:
        if self._attestor is None:
            raise RuntimeError("attestations are asked for before the program has started")
        return self._attestor
