"""Simulate the kubelet: make Deployments Available after a short delay, by writing their status. No pods run."""

from __future__ import annotations

from datetime import timedelta

from kardinal.clock import Clock
from kardinal.objects import DEPLOYMENT, Key
from kardinal.runtime import Informer, Manager, Result, Watch
from kardinal_local.simulator.rollout import advance

__all__ = ["Workloads"]


class Workloads:
    """The reconciler of Deployments: writes the status of every Deployment."""

    def __init__(self, manager: Manager, *, clock: Clock, delay: timedelta) -> None:
        self._clock = clock
        self._delay = delay
        self._status = manager.status
        self._deployments: Informer = manager.informer(DEPLOYMENT)
        manager.controller("workloads", self, [Watch(self._deployments)])

    async def reconcile(self, key: Key) -> Result:
        deployment = self._deployments.get(key.namespace, key.name)
        if deployment is None or "deletionTimestamp" in deployment["metadata"]:
            return Result()
        rollout = advance(deployment, now=self._clock.now(), delay=self._delay)
        await self._status.write(DEPLOYMENT, deployment, rollout.status)
        return Result(requeue_after=rollout.again)
