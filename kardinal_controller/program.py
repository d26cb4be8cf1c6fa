"""The control plane as one program: which caches, controllers and servers it has, and how they are connected.

This is the composition root. In standalone mode the agent's controllers run on the same manager, for the steps that no
shard claims; no other module of the control plane imports the agent. Everything is declared before it starts, so what
the program reads and writes can be seen here.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kardinal.clock import Clock
from kardinal.extensions import Extensions, webhook_parsers
from kardinal.git import GitRunner
from kardinal.kube import Client
from kardinal.objects import GRAPH
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER
from kardinal.promotion.kinds import BUNDLE, METRIC_CHECK, SUBSCRIPTION
from kardinal.promotion.metrics.prometheus import ANSWERS
from kardinal.promotion.translation import Features
from kardinal.runtime import KeyMemory, Manager
from kardinal.runtime.routes import RouteGroup
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal_agent.endpoints import EndpointClient, StepHosts
from kardinal_agent.program import Parts, install
from kardinal_agent.version_record import VersionRecord
from kardinal_controller.approvals import (
    AdmissionProof,
    ApprovalCreator,
    ApprovalEvents,
    ApprovalPosts,
    ApprovalRecords,
    ExternalAnswers,
)
from kardinal_controller.attestations import Attestations
from kardinal_controller.bundles import BundleReconciler, GraphKeeper, GraphsOfBundles, GraphsWithoutController
from kardinal_controller.caches import Caches
from kardinal_controller.expressions import ExpressionCompiler
from kardinal_controller.gates import (
    Calendars,
    ContractInput,
    DelegationInput,
    DriftInput,
    GateReconciler,
    TemplateReconciler,
    UpstreamInput,
)
from kardinal_controller.graphs import graph_controller
from kardinal_controller.graphs.accounts import AccountRights
from kardinal_controller.http import Bodies, BundlePosts, HostSecrets, HostWebhooks, HttpServer, Wakes
from kardinal_controller.metric_checks import FLAG as METRIC_FLAG
from kardinal_controller.metric_checks import MetricCheckReconciler, MetricDemand, MetricServers
from kardinal_controller.metric_checks.reconciler import CONCURRENCY
from kardinal_controller.metric_checks.secrets import MetricSecrets
from kardinal_controller.metrics import ControlPlaneMetrics
from kardinal_controller.options import ControllerOptions
from kardinal_controller.pipelines import (
    HistoryReconciler,
    IgnoredReconciler,
    OtherChangesReconciler,
    ValidationReconciler,
)
from kardinal_controller.registries import FLAG, RegistryClient, TagLookups
from kardinal_controller.release import ReleaseReconciler
from kardinal_controller.ui.access import Access, ProxyAccess, Reception, Reviews, Rights, SessionKey, TokenAccess
from kardinal_controller.ui.actions import ActionRoutes
from kardinal_controller.ui.server import VERSION, PageServer
from kardinal_controller.unimplemented_kinds import UnimplementedKindReconciler
from kardinal_controller.unserved import UnservedReconciler

__all__ = ["ControlPlane", "metric_requests"]

NAME = "kardinal-controller"


def metric_requests(patterns: Sequence[str], *, tls: ssl.SSLContext | None, seconds: float) -> EndpointClient:
    """Return the client for metric servers that match `patterns`."""
    hosts = StepHosts(patterns, flag=METRIC_FLAG)
    return EndpointClient(hosts, request_time=seconds, body_limit=ANSWERS.size, tls=tls)


class ControlPlane:
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
        self._approvals = self._declare_approvals(options)
        self._expressions = ExpressionCompiler()
        self.manager.add(self._expressions)
        features = Features(
            registry=self._extensions.registry,
            allow_local_repositories=options.agent.allow_local_repositories,
            allow_insecure_git=options.agent.allow_insecure_git,
        )
        self._calendars = Calendars(client, clock=clock)
        self._declare_bundles(options, features)
        self._declare_pipelines(options, features)
        self._declare_gates(options, self._declare_metric_checks(options))
        self._declare_unimplemented_kinds()
        self._declare_release()
        self._declare_unserved()
        graph_controller(
            self.manager,
            client,
            clock=clock,
            owners=[GraphsOfBundles(self._caches, client), GraphsWithoutController(self._caches)],
            expressions=self._expressions,
            reserved=(BUNDLE.group, GRAPH.group),
        )
        self._api = self._http_server(options)
        self.manager.add(self._api)
        self._page = self._declare_page(options)
        self.agent = self._install_agent(options) if options.standalone else None

    @property
    def api_url(self) -> str:
        """Return where Bundles are posted to; like the next two, only once the program has started."""
        return self._api.url

    @property
    def page_url(self) -> str:
        """Return where the web page is served; empty if it is not."""
        return self._page.url if self._page is not None else ""

    @property
    def metrics_url(self) -> str:
        return self.manager.urls["metrics"]

    @property
    def probe_url(self) -> str:
        return self.manager.urls["probes"]

    @property
    def caches(self) -> Caches:
        """Return the informers of the program; complete once it has started."""
        return self._caches

    @property
    def runner(self) -> GitRunner | None:
        """Return the threads that do Git work; None without the agent."""
        return self.agent.runner if self.agent else None

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()

    def _declare_approvals(self, options: ControllerOptions) -> ApprovalRecords:
        manager = self.manager
        admission = None
        if options.approvals_by_admission:
            admission = AdmissionProof(manager.client, namespace=options.system_namespace, clock=self._clock)
            manager.add(admission)
        return ApprovalRecords(manager, attestations=self._attestations, admission=admission)

    def _declare_bundles(self, options: ControllerOptions, features: Features) -> None:
        manager = self.manager
        clock = self._clock
        caches = self._caches
        rights = AccountRights(manager.client, clock=clock)
        manager.add(rights)
        graphs = GraphKeeper(
            caches,
            manager.client,
            clock=clock,
            features=features,
            policy_namespaces=options.policy_namespaces,
            attestations=self._attestations,
            expressions=self._expressions,
            rights=rights,
        )
        memory = KeyMemory(caches.bundles)
        bundles = BundleReconciler(
            caches,
            graphs,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            metrics=self._metrics,
            memory=memory,
            tags=self._declare_lookups(options, memory),
        )
        manager.controller("bundle", bundles, bundles.sources(), memory=memory)

    def _declare_lookups(self, options: ControllerOptions, memory: KeyMemory) -> TagLookups | None:
        """Declare what asks registries; None where the operator lists none."""
        if not options.allow_registries:
            return None
        hosts = options.allow_registries
        registry = RegistryClient(hosts, EndpointClient(StepHosts(hosts, flag=FLAG)))
        tags = TagLookups(self._caches, self.manager.client, registry, clock=self._clock, memory=memory)
        self.manager.controller("bundle-tags", tags, tags.sources())
        return tags

    def _declare_pipelines(self, options: ControllerOptions, features: Features) -> None:
        manager = self.manager
        caches = self._caches
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
        manager.controller("pipeline-ignored", ignored, ignored.sources(), memory=ignored.memory)
        manager.controller("pipeline-history", history, history.sources(), memory=history.memory)
        others = OtherChangesReconciler(
            caches,
            status=manager.status,
            clock=self._clock,
            policy_namespaces=options.policy_namespaces,
            expressions=self._expressions,
            calendars=self._calendars,
        )
        manager.controller("pipeline-other-changes", others, others.sources())

    def _declare_gates(self, options: ControllerOptions, checks: MetricDemand) -> None:
        manager = self.manager
        clock = self._clock
        caches = self._caches
        gates = GateReconciler(
            caches,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            metrics=self._metrics,
            attestations=self._attestations,
            approvals=self._approvals,
            expressions=self._expressions,
            calendars=self._calendars,
            inputs=(
                UpstreamInput(caches),
                ContractInput(caches),
                DelegationInput(caches),
                DriftInput(caches, clock),
            ),
            checks=checks,
        )
        templates = TemplateReconciler(
            caches,
            status=manager.status,
            recorder=manager.recorder,
            clock=clock,
            policy_namespaces=options.policy_namespaces,
            expressions=self._expressions,
        )
        approvals = ApprovalEvents(self._approvals, caches, recorder=manager.recorder, clock=clock)
        manager.controller("policygate", gates, gates.sources())
        manager.controller("approval", approvals, approvals.sources(), concurrency=1)
        manager.controller("policygate-template", templates, templates.sources(), concurrency=1)

    def _declare_metric_checks(self, options: ControllerOptions) -> MetricDemand:
        """Declare what queries metrics, and return what gates read them from."""
        manager = self.manager
        checks = manager.informer(METRIC_CHECK)
        demand = MetricDemand(checks)
        servers = MetricServers(
            options.allow_metric_hosts,
            self._extensions.metrics,
            secrets=MetricSecrets(manager.client, clock=self._clock),
            requests=metric_requests,
        )
        reconciler = MetricCheckReconciler(
            checks, self._caches, demand, servers, status=manager.status, clock=self._clock
        )
        manager.controller(
            "metriccheck", reconciler, reconciler.sources(), concurrency=CONCURRENCY, memory=reconciler.memory
        )
        return demand

    def _declare_unimplemented_kinds(self) -> None:
        manager = self.manager
        reconciler = UnimplementedKindReconciler(
            manager.informer(SUBSCRIPTION), status=manager.status, clock=self._clock
        )
        manager.controller("subscription", reconciler, reconciler.sources(), concurrency=1)

    def _declare_release(self) -> None:
        manager = self.manager
        release = ReleaseReconciler(self._caches.steps, manager.client, clock=self._clock, metrics=self._metrics)
        manager.controller("step-release", release, release.sources(), concurrency=1, memory=release.memory)

    def _declare_unserved(self) -> None:
        manager = self.manager
        caches = self._caches
        unserved = UnservedReconciler(
            caches.steps, caches.pipelines, status=manager.status, recorder=manager.recorder, clock=self._clock
        )
        manager.controller("step-unserved", unserved, unserved.sources(), concurrency=1, memory=unserved.memory)

    def _http_server(self, options: ControllerOptions) -> HttpServer:
        """Compose the server of the API: the posts of CI, approvals, and the deliveries of Git hosts."""
        client = self.manager.client
        caches = self._caches
        clock = self._clock
        bodies = Bodies()
        posts = BundlePosts(
            client,
            caches.pipelines,
            clock=clock,
            recorder=self.manager.recorder,
            attestations=self._attestations,
            bodies=bodies,
        )
        deliveries = HostWebhooks(
            HostSecrets(client, clock=clock),
            caches.pipelines,
            wakes=Wakes(client, caches.steps, clock=clock),
            parsers=webhook_parsers(self._extensions),
            clock=clock,
            bodies=bodies,
        )
        creator = ApprovalCreator(client, status=self.manager.status, attestations=self._attestations)
        approvals = ApprovalPosts(caches, Reviews(client, clock=clock), creator, clock=clock, bodies=bodies)
        answers = ExternalAnswers(caches, posts.authenticator, self._approvals, creator, clock=clock, bodies=bodies)
        groups: list[RouteGroup[Any]] = [*posts.groups(), approvals.group(), answers.group(), deliveries.group()]
        return HttpServer(groups, address=options.api_address, per_address=options.api_connections_per_address)

    def _declare_page(self, options: ControllerOptions) -> PageServer | None:
        """Declare the web page; None if it is not served."""
        ui = options.ui
        ui.check()
        if ui.listen_address is None or ui.auth is None:
            return None
        client = self.manager.client
        clock = self._clock
        reviews = Reviews(client, clock=clock)
        reception = Reception(rights=Rights(reviews, clock=clock), namespaces=self._caches.namespaces, version=VERSION)
        access: Access = ProxyAccess(reception=reception)
        if ui.auth == "token":
            key = SessionKey(client, namespace=options.system_namespace, path=ui.base_path, clock=clock)
            self.manager.add(key)
            access = TokenAccess(
                client,
                reviews=reviews,
                reception=reception,
                cookies=key.cookies,
                clock=clock,
                base_path=ui.base_path,
                behind_tls=ui.behind_tls,
            )
        page = PageServer(
            self._caches,
            access,
            clock=clock,
            address=ui.listen_address,
            base_path=ui.base_path,
            argocd=ui.argocd_url,
            certificate=ui.certificate,
            any_host=ui.behind_tls or ui.auth == "proxy",
            groups=(ActionRoutes(access, base_path=ui.base_path).group(),),
        )
        self.manager.add(page)
        return page

    def _install_agent(self, options: ControllerOptions) -> Parts:
        agent = replace(options.agent, policy_namespaces=options.policy_namespaces)
        return install(self.manager, agent, extensions=self._extensions)
