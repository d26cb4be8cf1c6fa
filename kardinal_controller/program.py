"""The control plane as one program: which caches, controllers and servers it has, and how they are connected.

This is the composition root. In standalone mode the agent's controllers run on the same manager, for the steps that no
shard claims; no other module of the control plane imports the agent. Everything is declared before it starts, so what
the program reads and writes can be seen here.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kardinal.api import BUNDLE, METRIC_CHECK, POLICY_GATE, PROMOTION_STEP, SUBSCRIPTION
from kardinal.api.names import FIELD_MANAGER_CONTROLLER, SYSTEM_NAMESPACE
from kardinal.extensions import Extensions, webhook_parsers
from kardinal.git import CACHE_SIZE, GitRunner
from kardinal.kube import Client
from kardinal.runtime import Clock, Manager
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal.translation import Features
from kardinal_agent.endpoints import EndpointClient, StepHosts
from kardinal_agent.program import AgentOptions, Parts, install
from kardinal_agent.version_record import VersionRecord
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import BundleReconciler, GraphKeeper
from kardinal_controller.bundles.admission import RecordedGraphs
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.gates import GateReconciler, TemplateReconciler
from kardinal_controller.graphs import graph_controller
from kardinal_controller.http import ApiServer, HostSecrets, HostWebhooks, Wakes
from kardinal_controller.metrics import ControlPlaneMetrics
from kardinal_controller.pipelines import (
    HistoryReconciler,
    IgnoredReconciler,
    OtherChangesReconciler,
    ValidationReconciler,
)
from kardinal_controller.registries import FLAG, Registry, TagLookups
from kardinal_controller.release import ReleaseReconciler
from kardinal_controller.unimplemented_kinds import UnimplementedKindReconciler
from kardinal_controller.unserved import UnservedReconciler

__all__ = ["Controller", "ControllerOptions"]

NAME = "kardinal-controller"

GRAPH_KINDS = (BUNDLE, PROMOTION_STEP, POLICY_GATE)
"""The kinds that the nodes of a Graph may have."""


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """The settings of the program, as its command line gives them."""

    policy_namespaces: tuple[str, ...] = ("platform-policies",)
    allow_local_repositories: bool = False
    allow_bypassing_hooks: bool = False
    allow_git_hosts: tuple[str, ...] = ()
    allow_insecure_git: tuple[str, ...] = ()
    git_transfer_max: float = 3600.0
    allow_remote_bases: bool = False
    allow_helm_inflation: bool = False
    require_renderer_isolation: bool = False
    scm_poll_interval: float = 300.0
    allow_step_hosts: tuple[str, ...] = ()
    allow_registries: tuple[str, ...] = ()
    standalone: bool = True
    health_namespaces: tuple[str, ...] = ()
    quote_namespaces: tuple[str, ...] = ()
    api_address: str = "127.0.0.1:0"
    api_connections_per_address: int = 0
    metrics_address: str | None = None
    metrics_auth: Literal["token", "none"] = "token"
    probe_address: str | None = None
    system_namespace: str = SYSTEM_NAMESPACE
    """The namespace of the controller itself."""
    git_cache_max_bytes: int = CACHE_SIZE
    git_cache_dir: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "kardinal")


class Controller:
    """The control plane on one connection; started once, stopped once."""

    def __init__(self, options: ControllerOptions, client: Client, *, clock: Clock, extensions: Extensions) -> None:
        self._extensions = extensions
        self.manager = Manager(
            client,
            clock=clock,
            name=NAME,
            probe_address=options.probe_address,
            metrics_address=options.metrics_address,
            scrape_access=ScrapeAccess(client, clock=clock) if options.metrics_auth == "token" else None,
        )
        self._clock = clock
        self._caches = Caches(self.manager)
        self._metrics = ControlPlaneMetrics(self.manager.metrics)
        self._attestations = Attestations(client, namespace=options.system_namespace)
        # Before what asks it.
        self.manager.add(self._attestations)
        self.manager.add(
            VersionRecord(
                client,
                program="controller",
                namespace=options.system_namespace,
                field_manager=FIELD_MANAGER_CONTROLLER,
            )
        )
        self._expressions = ExpressionCompiler()
        self.manager.add(self._expressions)
        features = Features(
            registry=self._extensions.registry,
            allow_local_repositories=options.allow_local_repositories,
            allow_insecure_git=options.allow_insecure_git,
        )
        self._declare_bundles(options, features)
        self._declare_pipelines(options, features)
        self._declare_gates(options)
        self._declare_unimplemented_kinds()
        self._declare_release()
        self._declare_unserved()
        recorded = RecordedGraphs(self._caches, client)
        graph_controller(
            self.manager,
            client,
            clock=clock,
            kinds=GRAPH_KINDS,
            expressions=self._expressions,
            admission=recorded.verdict,
            admission_changes=recorded.changes(),
        )
        self._api = ApiServer(
            client,
            self._caches.pipelines,
            clock=clock,
            address=options.api_address,
            per_address=options.api_connections_per_address,
            recorder=self.manager.recorder,
            attestations=self._attestations,
            hosts=HostWebhooks(
                HostSecrets(client, clock=clock),
                self._caches.pipelines,
                wakes=Wakes(client, self._caches.steps, clock=clock),
                parsers=webhook_parsers(extensions),
                clock=clock,
            ),
        )
        self.manager.add(self._api)
        self.agent = self._install_agent(options) if options.standalone else None

    @property
    def api_url(self) -> str:
        """Return where Bundles are posted to; like the next two, only once the program has started."""
        return self._api.url

    @property
    def metrics_url(self) -> str:
        return self.manager.urls["metrics"]

    @property
    def probe_url(self) -> str:
        return self.manager.urls["probes"]

    @property
    def runner(self) -> GitRunner | None:
        """Return the threads that do Git work; None without the agent."""
        return self.agent.runner if self.agent else None

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()

    def _declare_bundles(self, options: ControllerOptions, features: Features) -> None:
        manager, clock, caches = self.manager, self._clock, self._caches
        graphs = GraphKeeper(
            caches,
            manager.client,
            clock=clock,
            features=features,
            policy_namespaces=options.policy_namespaces,
            attestations=self._attestations,
            expressions=self._expressions,
        )
        bundles = BundleReconciler(
            caches,
            graphs,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            metrics=self._metrics,
            tags=self._declare_lookups(options),
        )
        manager.controller("bundle", bundles, bundles.sources())

    def _declare_lookups(self, options: ControllerOptions) -> TagLookups | None:
        """Declare what asks registries; None where the operator lists none."""
        if not options.allow_registries:
            return None
        hosts = options.allow_registries
        registry = Registry(hosts, EndpointClient(StepHosts(hosts, flag=FLAG)))
        tags = TagLookups(self._caches, self.manager.client, registry, clock=self._clock)
        self.manager.controller("bundle-tags", tags, tags.sources())
        return tags

    def _declare_pipelines(self, options: ControllerOptions, features: Features) -> None:
        manager, caches = self.manager, self._caches
        validation = ValidationReconciler(
            caches.pipelines, status=manager.status, recorder=manager.recorder, clock=self._clock, features=features
        )
        ignored = IgnoredReconciler(
            caches.pipelines,
            secrets=manager.client,
            registries=bool(options.allow_registries),
            webhooks=frozenset(webhook_parsers(self._extensions)),
            status=manager.status,
            recorder=manager.recorder,
            clock=self._clock,
        )
        history = HistoryReconciler(caches, manager.client, clock=self._clock)
        manager.controller("pipeline", validation, validation.sources())
        manager.controller("pipeline-ignored", ignored, ignored.sources())
        manager.controller("pipeline-history", history, history.sources())
        others = OtherChangesReconciler(
            caches,
            status=manager.status,
            clock=self._clock,
            policy_namespaces=options.policy_namespaces,
            expressions=self._expressions,
        )
        manager.controller("pipeline-other-changes", others, others.sources())

    def _declare_gates(self, options: ControllerOptions) -> None:
        manager, clock, caches = self.manager, self._clock, self._caches
        gates = GateReconciler(
            caches,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            metrics=self._metrics,
            attestations=self._attestations,
            expressions=self._expressions,
        )
        templates = TemplateReconciler(
            caches,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            policy_namespaces=options.policy_namespaces,
            expressions=self._expressions,
        )
        manager.controller("policygate", gates, gates.sources())
        manager.controller("policygate-template", templates, templates.sources(), concurrency=1)

    def _declare_unimplemented_kinds(self) -> None:
        manager = self.manager
        for resource in (METRIC_CHECK, SUBSCRIPTION):
            reconciler = UnimplementedKindReconciler(
                manager.informer(resource), status=manager.status, clock=self._clock
            )
            manager.controller(resource.kind.lower(), reconciler, reconciler.sources(), concurrency=1)

    def _declare_release(self) -> None:
        manager = self.manager
        release = ReleaseReconciler(self._caches.steps, manager.client, clock=self._clock, metrics=self._metrics)
        manager.controller("step-release", release, release.sources(), concurrency=1)

    def _declare_unserved(self) -> None:
        manager, caches = self.manager, self._caches
        unserved = UnservedReconciler(
            caches.steps, caches.pipelines, status=manager.status, recorder=manager.recorder, clock=self._clock
        )
        manager.controller("step-unserved", unserved, unserved.sources(), concurrency=1)

    def _install_agent(self, options: ControllerOptions) -> Parts:
        return install(
            self.manager,
            AgentOptions(
                git_cache_dir=options.git_cache_dir,
                git_cache_max_bytes=options.git_cache_max_bytes,
                allow_local_repositories=options.allow_local_repositories,
                allow_bypassing_hooks=options.allow_bypassing_hooks,
                health_namespaces=options.health_namespaces,
                quote_namespaces=options.quote_namespaces,
                policy_namespaces=options.policy_namespaces,
                allow_git_hosts=options.allow_git_hosts,
                allow_insecure_git=options.allow_insecure_git,
                git_transfer_max=options.git_transfer_max,
                allow_remote_bases=options.allow_remote_bases,
                allow_helm_inflation=options.allow_helm_inflation,
                require_renderer_isolation=options.require_renderer_isolation,
                scm_poll_interval=options.scm_poll_interval,
                allow_step_hosts=options.allow_step_hosts,
            ),
            extensions=self._extensions,
        )
