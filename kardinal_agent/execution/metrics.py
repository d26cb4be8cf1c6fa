"""The metrics of an environment at this moment, as the status of its MetricChecks has them."""

from __future__ import annotations

from kardinal.promotion.api import MetricCheck, PromotionStep
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.metrics.verification import Verification, verification
from kardinal.runtime import Informer

__all__ = ["EnvironmentMetrics"]


class EnvironmentMetrics:
    """Reads the MetricChecks that promotions name in `verify`, in their own namespace."""

    def __init__(self, checks: Informer) -> None:
        self._checks = checks

    def of(self, step: PromotionStep, status: PromotionStepStatus) -> Verification | None:
        """Return whether the metrics of a promotion pass; None if its environment has none."""
        spec = step.spec
        if spec.verify is None:
            return None
        return verification(
            {name: self._check(step.metadata.namespace, name) for name in spec.verify.metrics},
            bundle=spec.bundle_ref,
            environment=spec.environment,
            since=status.verifying_since,
            lasting=spec.verify.for_,
        )

    def _check(self, namespace: str, name: str) -> MetricCheck | None:
        stored = self._checks.get(namespace, name)
        return MetricCheck.model_validate(stored) if stored is not None else None
