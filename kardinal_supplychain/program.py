"""The program of supply chains: which caches and controllers it has, and how they are connected.

This is the composition root. Everything is declared before it starts, so what the program reads and writes can be seen
here; only the kinds that templates stamp are watched while they are needed.
"""

from __future__ import annotations

from kardinal.clock import Clock
from kardinal.kube import Client
from kardinal.runtime import Manager
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal_supplychain.api.kinds import DELIVERABLE, RUNNABLE, WORKLOAD
from kardinal_supplychain.options import SupplyChainOptions
from kardinal_supplychain.reconcilers.blueprint import BlueprintReconciler
from kardinal_supplychain.reconcilers.definitions import Definitions
from kardinal_supplychain.reconcilers.owner import OwnerReconciler
from kardinal_supplychain.reconcilers.runnable import RunnableReconciler
from kardinal_supplychain.ytt import Ytt

__all__ = ["NAME", "SupplyChains", "install"]

NAME = "kardinal-supplychain"


def install(manager: Manager, options: SupplyChainOptions) -> None:
    """Add the controllers of supply chains to `manager`; the addresses of `options` are those of a program alone."""
    definitions = Definitions(manager)
    for resource in definitions.blueprints:
        reconciler = BlueprintReconciler(resource, definitions, status=manager.status, clock=manager.clock)
        manager.controller(resource.kind.lower(), reconciler, reconciler.sources(), concurrency=1)
    ytt = Ytt(options.ytt)
    manager.add(ytt)
    for resource in (WORKLOAD, DELIVERABLE):
        owners = OwnerReconciler(resource, manager, definitions=definitions, ytt=ytt)
        manager.controller(resource.kind.lower(), owners, owners.sources(), memory=owners.memory)
    runnables = RunnableReconciler(manager)
    manager.controller(RUNNABLE.kind.lower(), runnables, runnables.sources(), memory=runnables.memory)


class SupplyChains:
    """The controllers of supply chains as a program of its own; started once, stopped once."""

    def __init__(self, options: SupplyChainOptions, client: Client, *, clock: Clock) -> None:
        self.manager = Manager(
            client,
            clock=clock,
            name=NAME,
            probe_address=options.probe_address,
            metrics_address=options.metrics_address,
            scrape_access=ScrapeAccess(client, clock=clock) if options.metrics_auth == "token" else None,
        )
        install(self.manager, options)

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
