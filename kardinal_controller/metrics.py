"""The metrics of the control plane; those of promotions and health belong to the agent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from kardinal.runtime import BoundedLabels

__all__ = ["ControlPlaneMetrics"]


class ControlPlaneMetrics:
    """Counts for one manager, in its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._created = BoundedLabels()
        self._gates = BoundedLabels()
        self._bundles_created = Counter(
            "kardinal_bundles_created", "Bundles created", ["pipeline", "source"], registry=registry
        )
        self._environments = BoundedLabels()
        self._rollbacks = Counter(
            "kardinal_rollbacks", "Rollbacks begun", ["environment", "trigger"], registry=registry
        )
        self.gates_evaluated = Counter(
            "kardinal_policy_gates_evaluated", "PolicyGate evaluations", ["result"], registry=registry
        )
        self._gates_blocked = Counter(
            "kardinal_policy_gates_blocked", "Promotions blocked by a gate", ["gate"], registry=registry
        )
        self._released = BoundedLabels()
        self._steps_released = Counter(
            "kardinal_steps_released", "Deleted PromotionSteps that no agent let go", ["shard"], registry=registry
        )
        for result in ("pass", "fail", "error"):
            self.gates_evaluated.labels(result)

    def bundle_created(self, pipeline: str, source: str, *, namespace: str) -> None:
        """Count a new Bundle in `namespace`."""
        self._bundles_created.labels(*self._created.admit(pipeline, source, namespace=namespace)).inc()

    def rollback(self, environment: str, trigger: str, *, namespace: str) -> None:
        """Count a rollback of an environment that has begun."""
        self._rollbacks.labels(*self._environments.admit(environment, trigger, namespace=namespace)).inc()

    def gate_blocked(self, gate: str, *, namespace: str) -> None:
        """Count a promotion in `namespace` that a gate holds."""
        self._gates_blocked.labels(*self._gates.admit(gate, namespace=namespace)).inc()

    def step_released(self, shard: str, *, namespace: str) -> None:
        """Count a PromotionStep whose finalizer was removed here, because the agent of `shard` did not."""
        self._steps_released.labels(*self._released.admit(shard, namespace=namespace)).inc()
