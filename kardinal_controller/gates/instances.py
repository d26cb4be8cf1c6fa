"""The reconciler of gate instances: the gates that one Bundle meets before one environment.

It is the only writer of their status. It evaluates again exactly when the answer can change: on a change of the gate,
of its Bundle, of the steps before and behind it, of the Bundle that was there before; at the moment at which time alone
changes the answer; and at the latest after recheckInterval. `kardinal.policy.decision` says whether an evaluation is
worth a write; most are not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from kardinal.api import POLICY_GATE, Bundle, PolicyGate, PromotionStep
from kardinal.api.image import bundle_version
from kardinal.api.names import step_name
from kardinal.api.policy_gate import GateOrigin, PolicyGateStatus
from kardinal.objects import JsonObject, Key, key_of, labels_of
from kardinal.policy.context import Context, Soak, upstream_soak
from kardinal.policy.decision import decide
from kardinal.policy.matching import is_instance
from kardinal.runtime import Clock, Result, Source, StatusWriter, Watch
from kardinal.runtime.predicates import either, generation_changed, labels_changed, status_changed
from kardinal_controller.caches import Caches, bundle_key, pipeline_label
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["GateReconciler"]

_NOTHING_STARTS = frozenset(["Verified", "Superseded", "SkipDenied"])
"""Phases in which no step starts any more. In a failed Bundle, environments beside the failed one still go on."""


class GateReconciler:
    """Evaluates gate instances."""

    def __init__(self, caches: Caches, *, status: StatusWriter, clock: Clock, metrics: ControlPlaneMetrics) -> None:
        self._caches = caches
        self._status = status
        self._clock = clock
        self._metrics = metrics

    def sources(self) -> Sequence[Source]:
        return [
            # Also where the Bundle label was taken off or put on just now.
            Watch(self._caches.gates, when=either(lambda gate: is_instance(labels_of(gate)))),
            # A step that appears or goes settles its gates; its verification starts the soak of the next.
            Watch(self._caches.steps, self._gates_of_step, when=status_changed("state", "verifiedAt")),
            Watch(
                self._caches.bundles,
                self._gates_of_bundle,
                when=labels_changed | generation_changed | status_changed("phase", "environments"),
            ),
        ]

    async def reconcile(self, key: Key) -> Result:
        current = self._caches.gates.get(*key)
        if current is None or not is_instance(labels_of(current)):
            return Result()
        gate = PolicyGate.model_validate(current)
        origin = gate.spec.origin
        if origin is None:
            await self._refuse(current, gate)
            return Result()
        stored = self._caches.bundles.get(key.namespace, origin.bundle)
        if stored is None:
            return Result()
        bundle = Bundle.model_validate(stored)
        step = self._caches.steps.get(key.namespace, step_name(origin.bundle, origin.environment))
        decision = decide(
            gate,
            self._context(gate, origin, bundle),
            now=self._clock.now(),
            passed=step is not None or bundle.status.phase in _NOTHING_STARTS,
        )
        self._metrics.gates_evaluated.labels(decision.answer.result).inc()
        if decision.status is not None:
            if gate.status.ready is not False and not decision.answer.ready:
                self._metrics.gates_blocked.labels(origin.name).inc()
            await self._status.write(POLICY_GATE, current, decision.status.to_json())
        return Result(requeue_after=decision.look_again)

    async def _refuse(self, current: JsonObject, gate: PolicyGate) -> None:
        """Close an instance that no Graph has created: it does not say for which environment it stands."""
        status = PolicyGateStatus(
            observed_generation=gate.metadata.generation or None,
            ready=False,
            last_evaluated_at=gate.status.last_evaluated_at or self._clock.now(),
            reason="spec.origin is missing: instances are made by a Graph; take the Bundle label off for a template",
        )
        await self._status.write(POLICY_GATE, current, status.to_json())

    def _context(self, gate: PolicyGate, origin: GateOrigin, bundle: Bundle) -> Context:
        return Context(
            bundle=bundle,
            environment=origin.environment,
            approval=origin.approval,
            soak=self._soak(gate, origin, bundle),
            previous_version=self._previous_version(gate, origin),
        )

    def _soak(self, gate: PolicyGate, origin: GateOrigin, bundle: Bundle) -> Soak:
        verified = {name: self._verified_since(bundle, name) for name in gate.spec.upstream_environments}
        return upstream_soak(origin.environment, verified)

    def _verified_since(self, bundle: Bundle, environment: str) -> datetime | None:
        """Return since when an environment is Verified: as its step says, or the Bundle where the step is gone."""
        namespace = bundle.metadata.namespace
        stored = self._caches.steps.get(namespace, step_name(bundle.metadata.name, environment))
        if stored is not None:
            step = PromotionStep.model_validate(stored).status
            return step.verified_at if step.state == "Verified" else None
        entry = bundle.status.environments.get(environment)
        return entry.verified_at if entry and entry.state == "Verified" else None

    def _previous_version(self, gate: PolicyGate, origin: GateOrigin) -> str | None:
        """Return the version of the other Bundle that was Verified last in the environment."""
        if "previousBundle" not in gate.spec.expression:
            return None
        verified: list[tuple[datetime, Bundle]] = []
        for stored in self._caches.bundles_of(gate.metadata.namespace, origin.pipeline):
            other = Bundle.model_validate(stored)
            entry = other.status.environments.get(origin.environment)
            if other.metadata.name != origin.bundle and entry and entry.state == "Verified" and entry.verified_at:
                verified.append((entry.verified_at, other))
        if not verified:
            return None
        return bundle_version(max(verified, key=lambda pair: pair[0])[1].spec.artifacts)

    def _gates_of_step(self, step: JsonObject) -> Iterable[Key]:
        return map(key_of, self._caches.gates_of(bundle_key(step)))

    def _gates_of_bundle(self, bundle: JsonObject) -> Iterable[Key]:
        """Name its own gates, and those of its Pipeline that ask which Bundle was there before."""
        key = key_of(bundle)
        reading = self._caches.gates_reading_previous(key.namespace, pipeline_label(bundle))
        return map(key_of, [*self._caches.gates_of(key), *reading])
