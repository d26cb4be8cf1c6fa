"""The gates of a promotion as they are at this moment: what holds it, and the evidence for it.

Two kinds of gates are asked before every effect: the freeze of the pipeline, which holds by being there, and the
instances the promotion came through, which hold when they are no longer ready. A gate that is required and missing
holds as well: without an answer there is no permission.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from kardinal.api import PolicyGate, PromotionStep, names
from kardinal.api.evidence import Evidence, GateResult
from kardinal.objects import JsonObject
from kardinal.runtime import Informer

__all__ = ["Gates"]

_NAME_LIMIT = 256
"""Characters that the schema allows for the name of an approver."""


class Gates:
    """The gates of a cluster, from the agent's point of view."""

    def __init__(self, informer: Informer) -> None:
        self._informer = informer

    def holds(self, step: PromotionStep) -> list[str]:
        """Return everything that forbids an effect now, each in words; empty when nothing does."""
        return [*self._freeze(step), *self._closed(step)]

    def results(self, step: PromotionStep) -> list[GateResult]:
        """Return how the required gates stand, with the values they saw."""
        return [
            GateResult(
                name=gate.spec.origin.name if gate.spec.origin else gate.metadata.name,
                scope=gate.spec.origin.scope if gate.spec.origin else None,
                result="pass" if gate.status.ready else "fail",
                reason=gate.status.reason or gate.spec.message or None,
            )
            for gate in self._required(step)
        ]

    def evidence(self, step: PromotionStep, *, merged_by: str | None) -> Evidence:
        """Return what a Verified promotion can show for itself: its gates with the values they saw, and who approved.

        A merge by the agent itself approves nothing.
        """
        approved = step.spec.approval == "pr-review" and merged_by
        return Evidence(
            gate_duration=self._duration(step),
            # The name comes from the repository, whose writers may put any text there.
            approved_by=(str(merged_by)[:_NAME_LIMIT],) if approved else (),
            policy_gates=tuple(self.results(step)),
        )

    def _duration(self, step: PromotionStep) -> timedelta | None:
        """Return how long the gates held the promotion back: from the first of them to the PromotionStep itself."""
        made = [gate.metadata.creation_timestamp for gate in self._required(step)]
        began = min((moment for moment in made if moment is not None), default=None)
        ended = step.metadata.creation_timestamp
        return max(ended - began, timedelta()) if began is not None and ended is not None else None

    def _freeze(self, step: PromotionStep) -> Iterable[str]:
        name = names.freeze_name(step.spec.pipeline)
        gate = self._get(step, name)
        if gate is not None and (gate["metadata"].get("labels") or {}).get(names.LABEL_TYPE) == names.TYPE_FREEZE:
            message = gate["spec"].get("message")
            yield f"held by a freeze of {step.spec.pipeline} (PolicyGate {name})" + (f": {message}" if message else "")

    def _closed(self, step: PromotionStep) -> Iterable[str]:
        for name in step.spec.required_gates:
            gate = self._get(step, name)
            if gate is None:
                yield f"held: its gate {name} does not exist"
                continue
            spec, status = gate["spec"], gate.get("status") or {}
            if status.get("ready") is not True:
                shown = (spec.get("origin") or {}).get("name") or name
                yield f"held by gate {shown}: {status.get('reason') or spec.get('message') or 'it is not ready'}"

    def _required(self, step: PromotionStep) -> list[PolicyGate]:
        found = (self._get(step, name) for name in step.spec.required_gates)
        return [PolicyGate.model_validate(gate) for gate in found if gate is not None]

    def _get(self, step: PromotionStep, name: str) -> JsonObject | None:
        return self._informer.get(step.metadata.namespace, name)
