"""The Approvals of a cluster, and which of them count.

An Approval that the controller has created counts by its signature. One that a person has created counts only with
`--approvals-by-admission`, and while the admission policy is proven to refuse forged ones. Labels and annotations mean
nothing. An Approval is in the namespace of its Bundle, and names it by uid.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from kardinal.objects import JsonObject, Key
from kardinal.promotion.api import Approval, Bundle
from kardinal.promotion.kinds import APPROVAL
from kardinal.promotion.policy.approvals import APPROVALS, EXTERNAL, Approvals, approvals_of
from kardinal.runtime import Informer, Manager, Source, Watch
from kardinal.runtime.sources import Channel, Mapper
from kardinal_controller.approvals.admission import AdmissionProof
from kardinal_controller.attestations import Attestations

__all__ = ["ApprovalRecords"]

_BUNDLE = "bundle"


class ApprovalRecords:
    """The Approvals of one cluster. `admission` is None without `--approvals-by-admission`."""

    def __init__(self, manager: Manager, *, attestations: Attestations, admission: AdmissionProof | None) -> None:
        self._informer: Informer = manager.informer(APPROVAL)
        self._informer.index(_BUNDLE, lambda obj: [_of_bundle(obj["metadata"]["namespace"], obj["spec"]["uid"])])
        self._attestations = attestations
        self._admission = admission

    def at_gate(self, bundle: Bundle, environment: str, gate: Key, *, expression: str) -> Approvals | None:
        """Return the approvals of a Bundle before an environment at the template `gate`.

        None if the expression reads no approvals.
        """
        if APPROVALS not in expression and EXTERNAL not in expression:
            return None
        return approvals_of(
            self.of_bundle(bundle),
            uid=bundle.metadata.uid,
            environment=environment,
            gate=f"{gate.namespace}/{gate.name}",
            counts=self.counts,
        )

    def of_bundle(self, bundle: Bundle) -> list[Approval]:
        """Return all Approvals of a Bundle, also those that do not count."""
        metadata = bundle.metadata
        stored = self._informer.by_index(_BUNDLE, _of_bundle(metadata.namespace, metadata.uid))
        return [approval for approval in map(_read, stored) if approval is not None]

    def counts(self, approval: Approval) -> bool:
        """Return whether it is proven that the approver of an Approval has created it and had the right."""
        if approval.spec.via == "controller":
            return self._attestations.is_signed(approval)
        return self._admission is not None and self._admission.holds

    def get(self, key: Key) -> Approval | None:
        """Return an Approval; None if it does not exist."""
        stored = self._informer.get(*key)
        return _read(stored) if stored is not None else None

    def sources(self, keys: Mapper) -> Sequence[Source]:
        """Return the changes of Approvals, and of whether they count, mapped to `keys`."""
        found: list[Source] = [Watch(self._informer, keys)]
        if self._admission is not None:
            channel = Channel()

            def wake() -> None:
                for approval in self._informer.list():
                    for key in keys(approval):
                        channel.push(key)

            self._admission.on_change(wake)
            found.append(channel)
        return found


def _of_bundle(namespace: str, uid: str) -> str:
    return f"{namespace}/{uid}"


def _read(stored: JsonObject) -> Approval | None:
    try:
        return Approval.model_validate(stored)
    except ValidationError:
        # Stored under another schema than ours: it does not count.
        return None
