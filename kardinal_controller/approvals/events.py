"""Events about a Bundle for its Approvals that count: that one was made, and that one was revoked.

The first of two approvals, for example, opens no gate, and no Event of the gate tells of it. An Event is emitted when
an Approval is first seen to count, unless it is older than a minute: after a start of the controller all are new.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from kardinal.clock import Clock
from kardinal.objects import Key
from kardinal.promotion.api.approval import ApprovalSpec
from kardinal.runtime import EventRecorder, Result, Source
from kardinal.runtime.finalizers import is_being_deleted
from kardinal.runtime.sources import to_self
from kardinal_controller.approvals.records import ApprovalRecords
from kardinal_controller.caches import Caches

__all__ = ["ApprovalEvents"]

_NEW = timedelta(minutes=1)


class ApprovalEvents:
    """The reconciler of Approvals: it writes nothing but Events about their Bundles."""

    def __init__(self, records: ApprovalRecords, caches: Caches, *, recorder: EventRecorder, clock: Clock) -> None:
        self._records = records
        self._caches = caches
        self._recorder = recorder
        self._clock = clock
        self._counting: dict[Key, ApprovalSpec] = {}
        """The Approvals that were seen to count, until they are gone."""

    def sources(self) -> Sequence[Source]:
        return self._records.sources(to_self)

    async def reconcile(self, key: Key) -> Result:
        approval = self._records.get(key)
        if approval is None:
            gone = self._counting.pop(key, None)
            if gone is not None and gone.gate is not None:
                self._tell(
                    key.namespace, gone, "ApprovalRevoked", f"the approval of {gone.approver} {_where(gone)} is revoked"
                )
        elif key not in self._counting and self._records.counts(approval):
            spec = self._counting[key] = approval.spec
            created = approval.metadata.creation_timestamp
            if created is not None and self._clock.now() - created < _NEW:
                approves = spec.external is None or spec.external.approved
                why = f": {spec.reason}" if spec.reason else ""
                verb = "approves" if approves else "does not approve"
                reason = "Approved" if approves else "NotApproved"
                self._tell(key.namespace, spec, reason, f"{spec.approver} {verb} {_where(spec)}{why}")
        return Result()

    def _tell(self, namespace: str, spec: ApprovalSpec, reason: str, note: str) -> None:
        """Emit an Event about the Bundle of an Approval, unless the Bundle is gone and took the Approval along."""
        bundle = self._caches.bundles.get(namespace, spec.bundle)
        if bundle is not None and bundle["metadata"]["uid"] == spec.uid and not is_being_deleted(bundle):
            self._recorder.event(bundle, reason=reason, note=note)


def _where(spec: ApprovalSpec) -> str:
    at = f"at gate {spec.gate}" if spec.external is None else f"as {spec.external.name}"
    return f"{at} before {spec.environment}" if spec.environment else at
