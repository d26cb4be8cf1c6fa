"""Remove the finalizer of deleted PromotionSteps whose agent does not: its cluster is gone, or the shard is unserved.

The agent withdraws the proposal of a deleted PromotionStep, and gives up after ten minutes. If it has not even given
up, the control plane removes the finalizer, so that the deletion of a namespace does not wait for a cluster that is
gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import structlog

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.objects import Key
from kardinal.promotion.api.names import FINALIZER
from kardinal.promotion.kinds import PROMOTION_STEP
from kardinal.runtime import Informer, KeyMemory, Result, Source, Watch
from kardinal.runtime.finalizers import Patience, has_finalizer, is_being_deleted, remove_finalizer
from kardinal.runtime.predicates import metadata_changed
from kardinal_controller.metrics import ControlPlaneMetrics

__all__ = ["ReleaseReconciler"]

RELEASED_AFTER = timedelta(minutes=11)
"""The time that an agent has: its own ten minutes for the host, and one minute to write."""

log = structlog.get_logger(__name__)


class ReleaseReconciler:
    """Removes the finalizer of PromotionSteps that were deleted more than `RELEASED_AFTER` ago."""

    def __init__(self, steps: Informer, client: Client, *, clock: Clock, metrics: ControlPlaneMetrics) -> None:
        self._steps = steps
        self._client = client
        self._metrics = metrics
        self.memory = KeyMemory(steps)
        self._patience = Patience(RELEASED_AFTER, clock=clock, memory=self.memory)

    def sources(self) -> Sequence[Source]:
        return [Watch(self._steps, when=metadata_changed("deletionTimestamp", "finalizers"))]

    async def reconcile(self, key: Key) -> Result:
        step = self._steps.get(*key)
        if step is None or not is_being_deleted(step) or not has_finalizer(step, FINALIZER):
            return Result()
        if left := self._patience.left(step):
            return Result(requeue_after=left)
        await remove_finalizer(self._client, PROMOTION_STEP, step, FINALIZER)
        shard = step["spec"].get("shard") or ""
        log.warning("no agent has let a deleted promotion go", promotion=str(key), shard=shard)
        self._metrics.step_released(shard, namespace=key.namespace)
        return Result()
