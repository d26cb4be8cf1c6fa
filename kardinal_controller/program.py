"""The control plane as one program: which caches, controllers and servers it has, and with what they are connected.

This is the composition root. In standalone mode the agent's controllers run on the same manager, for the steps that no
shard claims; nothing else of the control plane knows the agent. Everything is declared before it starts, so what the
program may read and write can be seen here.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from kardinal.api import BUNDLE, METRIC_CHECK, POLICY_GATE, PROMOTION_STEP, SUBSCRIPTION
from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.runtime import Clock, Manager
from kardinal.translation import Features
from kardinal_agent.program import AgentOptions, Parts, install
from kardinal_controller.bundles import BundleReconciler, GraphKeeper
from kardinal_controller.caches import Caches
from kardinal_controller.gates import GateReconciler, TemplateReconciler
from kardinal_controller.graphs import graph_controller
from kardinal_controller.http import ApiServer
from kardinal_controller.metrics import ControlPlaneMetrics
from kardinal_controller.pipelines import PipelineReconciler
from kardinal_controller.unimplemented_kinds import UnimplementedKindReconciler

__all__ = ["Controller", "ControllerOptions"]

NAME = "kardinal-controller"

GRAPH_KINDS = (BUNDLE, PROMOTION_STEP, POLICY_GATE)
"""What the nodes of a Graph may be."""


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """What an operator decides."""

    policy_namespaces: tuple[str, ...] = ("platform-policies",)
    allow_local_repositories: bool = False
    standalone: bool = True
    api_address: str = "127.0.0.1:0"
    metrics_address: str | None = None
    probe_address: str | None = None
    git_cache_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "kardinal")


class Controller:
    """The control plane on one connection; started once, stopped once."""

    def __init__(self, options: ControllerOptions, client: Client, *, clock: Clock) -> None:
        self.manager = Manager(
            client,
            clock=clock,
            name=NAME,
            probe_address=options.probe_address,
            metrics_address=options.metrics_address,
        )
        self._clock = clock
        self._caches = Caches(self.manager)
        self._metrics = ControlPlaneMetrics(self.manager.metrics)
        self._declare_promotion(options)
        self._declare_policy(options)
        graph_controller(self.manager, client, clock=clock, kinds=GRAPH_KINDS)
        self._api = ApiServer(client, self._caches.pipelines, clock=clock, address=options.api_address)
        self.manager.add(self._api)
        self.agent = self._install_agent(options) if options.standalone else None

    @property
    def api_url(self) -> str:
        """Where Bundles are posted to, once started; so are the next two."""
        return self._api.url

    @property
    def metrics_url(self) -> str:
        return self.manager.urls["metrics"]

    @property
    def probe_url(self) -> str:
        return self.manager.urls["probes"]

    @property
    def runner(self) -> GitRunner | None:
        """The threads that do Git work; none without the agent."""
        return self.agent.runner if self.agent else None

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()

    def _declare_promotion(self, options: ControllerOptions) -> None:
        manager, client, clock, caches = self.manager, self.manager.client, self._clock, self._caches
        features = Features(allow_local_repositories=options.allow_local_repositories)
        graphs = GraphKeeper(
            caches, client, clock=clock, features=features, policy_namespaces=options.policy_namespaces
        )
        bundles = BundleReconciler(
            caches,
            graphs,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            metrics=self._metrics,
        )
        pipelines = PipelineReconciler(
            caches, client, status=manager.status, recorder=manager.recorder, clock=clock, features=features
        )
        manager.controller("bundle", bundles, bundles.sources())
        manager.controller("pipeline", pipelines, pipelines.sources())
        for resource in (METRIC_CHECK, SUBSCRIPTION):
            unavailable = UnimplementedKindReconciler(manager.informer(resource), status=manager.status, clock=clock)
            manager.controller(resource.kind.lower(), unavailable, unavailable.sources(), concurrency=1)

    def _declare_policy(self, options: ControllerOptions) -> None:
        manager, clock, caches = self.manager, self._clock, self._caches
        gates = GateReconciler(caches, status=manager.status, clock=clock, metrics=self._metrics)
        templates = TemplateReconciler(
            caches,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            policy_namespaces=options.policy_namespaces,
        )
        manager.controller("policygate", gates, gates.sources())
        manager.controller("policygate-template", templates, templates.sources(), concurrency=1)

    def _install_agent(self, options: ControllerOptions) -> Parts:
        return install(
            self.manager,
            AgentOptions(
                git_cache_dir=options.git_cache_dir, allow_local_repositories=options.allow_local_repositories
            ),
        )
