"""Create an Approval and sign it.

The signature covers the uid that the API server gives the object, so it is written after the creation. An Approval
whose signature could not be written does not count, and is deleted.
"""

from __future__ import annotations

from contextlib import suppress

from kardinal.kube import AlreadyExists, Client, KubeError
from kardinal.objects import JsonObject
from kardinal.promotion.api import Approval, Bundle
from kardinal.promotion.api.approval import ApprovalSpec
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER
from kardinal.promotion.kinds import APPROVAL, BUNDLE
from kardinal.runtime import StatusWriter
from kardinal_controller.attestations import Attestations

__all__ = ["ApprovalCreator"]


class ApprovalCreator:
    """Creates Approvals of the controller."""

    def __init__(self, client: Client, *, status: StatusWriter, attestations: Attestations) -> None:
        self._client = client
        self._status = status
        self._attestations = attestations

    async def create(self, name: str, spec: ApprovalSpec, bundle: Bundle) -> Approval:
        """Return the signed Approval `name` of a Bundle, with which it will be deleted.

        If there is one of this name already, it is returned, and signed if its spec is the same; the caller compares.
        Raises `KubeError`.
        """
        try:
            stored = await self._client.create(
                APPROVAL, _manifest(name, spec, bundle), field_manager=FIELD_MANAGER_CONTROLLER
            )
        except AlreadyExists:
            stored = await self._client.get(APPROVAL, name, bundle.metadata.namespace)
            existing = Approval.model_validate(stored)
            return await self._signed(stored, existing) if existing.spec == spec else existing
        try:
            return await self._signed(stored, Approval.model_validate(stored))
        except KubeError:
            with suppress(KubeError):
                await self.delete(Approval.model_validate(stored))
            raise

    async def delete(self, approval: Approval) -> None:
        metadata = approval.metadata
        await self._client.delete(APPROVAL, metadata.name, metadata.namespace, uid=metadata.uid)

    async def _signed(self, stored: JsonObject, approval: Approval) -> Approval:
        status = approval.status.model_copy(update={"signature": self._attestations.signature(approval)})
        await self._status.write(APPROVAL, stored, status.to_json())
        return approval.model_copy(update={"status": status})


def _manifest(name: str, spec: ApprovalSpec, bundle: Bundle) -> JsonObject:
    metadata = bundle.metadata
    owner = {"apiVersion": BUNDLE.api_version, "kind": BUNDLE.kind, "name": metadata.name, "uid": metadata.uid}
    return {
        "apiVersion": APPROVAL.api_version,
        "kind": APPROVAL.kind,
        "metadata": {"name": name, "namespace": metadata.namespace, "ownerReferences": [owner]},
        "spec": spec.to_json(),
    }
