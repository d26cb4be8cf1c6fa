"""Letting PromotionSteps go whose agent does not: it is gone with its cluster, or serves the shard no more.

The agent withdraws the proposal of a step that is deleted, and gives up after ten minutes. Where it has not even done
that, the control plane takes the finalizer off, so that no namespace waits for a cluster that is not there any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from kardinal.api import PROMOTION_STEP
from kardinal.api.names import FINALIZER
from kardinal.kube import Client
from kardinal.objects import Key
from kardinal.runtime import Clock, Informer, Result, Source, Watch
from kardinal.runtime.finalizers import Patience, has_finalizer, is_being_deleted, remove_finalizer
from kardinal.runtime.predicates import deleted, metadata_changed
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["ReleaseReconciler"]

PATIENCE = timedelta(minutes=11)
"""How long an agent has: its own ten minutes for the host, and one to write."""

log = structlog.get_logger(__name__)


class ReleaseReconciler:
    """Takes the finalizer off PromotionSteps that were deleted long ago."""

    def __init__(self, steps: Informer, client: Client, *, clock: Clock, metrics: ControlPlaneMetrics) -> None:
        self._steps = steps
        self._client = client
        self._metrics = metrics
        self._patience = Patience(PATIENCE, clock=clock)

    def sources(self) -> Sequence[Source]:
        return [Watch(self._steps, when=metadata_changed("deletionTimestamp", "finalizers") & ~deleted)]

    async def reconcile(self, key: Key) -> Result:
        step = self._steps.get(*key)
        if step is None or not is_being_deleted(step) or not has_finalizer(step, FINALIZER):
            self._patience.forget(key)
            return Result()
        if left := self._patience.left(step):
            return Result(requeue_after=left)
        await remove_finalizer(self._client, PROMOTION_STEP, step, FINALIZER)
        shard = step["spec"].get("shard") or ""
        log.warning("no agent has let a deleted promotion go", promotion=str(key), shard=shard)
        self._metrics.step_released(shard, namespace=key.namespace)
        return Result()
