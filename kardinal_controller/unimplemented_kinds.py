"""Kinds that this version stores without effect: the status of each object says so.

A MetricCheck that is never queried, or a Subscription that is never polled, would otherwise look as if it worked.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.clock import Clock
from kardinal.models.base import Status
from kardinal.objects import JsonObject, Key, ResourceType
from kardinal.promotion.api import set_condition
from kardinal.runtime import Informer, Result, Source, StatusWriter, Watch

__all__ = ["UnimplementedKindReconciler"]


class UnimplementedKindReconciler:
    """Writes Ready=False/NotImplemented on every object of one kind."""

    def __init__(self, informer: Informer, *, status: StatusWriter, clock: Clock) -> None:
        self._informer = informer
        self._status = status
        self._clock = clock

    def sources(self) -> Sequence[Source]:
        return [Watch(self._informer)]

    async def reconcile(self, key: Key) -> Result:
        current = self._informer.get(*key)
        if current is not None:
            resource = self._informer.resource
            await self._status.write(resource, current, self._not_implemented(current, resource))
        return Result()

    def _not_implemented(self, current: JsonObject, resource: ResourceType) -> JsonObject:
        before = Status.model_validate(current.get("status", {}))
        generation = current["metadata"].get("generation")
        conditions = set_condition(
            before.conditions,
            "Ready",
            "False",
            reason="NotImplemented",
            message=f"{resource.kind} is stored, but this version does not act on it",
            now=self._clock.now(),
            observed_generation=generation,
        )
        return Status(observed_generation=generation, conditions=conditions).to_json()
