"""The figures of the control plane (DD 3.13). Those of promotions and health belong to the agent."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

__all__ = ["ControlPlaneMetrics"]


class ControlPlaneMetrics:
    """One set per manager, registered with its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.bundles_created = Counter(
            "kardinal_bundles_created", "Bundles created", ["pipeline", "source"], registry=registry
        )
        self.rollbacks = Counter(
            "kardinal_rollbacks", "Rollbacks triggered", ["environment", "trigger"], registry=registry
        )
        self.gates_evaluated = Counter(
            "kardinal_policy_gates_evaluated", "PolicyGate evaluations", ["result"], registry=registry
        )
        self.gates_blocked = Counter(
            "kardinal_policy_gates_blocked", "Promotions blocked by a gate", ["gate"], registry=registry
        )
        for result in ("pass", "fail", "error"):
            self.gates_evaluated.labels(result)
