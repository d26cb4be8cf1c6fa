"""The agent as a whole: its caches, its controller and what they stand on.

It runs in two places with the same parts. As a program of its own it serves one shard: PromotionSteps and gates come
from the control plane, Secrets and workloads from the cluster it runs in. Inside the controller (`install` on its
manager) it serves the PromotionSteps without a shard, and both clusters are one. The selector is the server's, so that
an agent never even sees the PromotionSteps of others.

Nothing here survives the process: mirrors and caches may be thrown away at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import structlog

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.api.names import FIELD_MANAGER_AGENT, LABEL_SHARD, SYSTEM_NAMESPACE
from kardinal.extensions import Extensions
from kardinal.git import CACHE_SIZE, GitRunner, Repositories, TransferLimits
from kardinal.git.addresses import HostAddresses
from kardinal.git.rendering import ProgramRenderer, RendererOptions
from kardinal.git.shares import Shares
from kardinal.kube import Client
from kardinal.objects import GRAPH, NAMESPACE, JsonObject
from kardinal.runtime import Backoff, Channel, Clock, Manager
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal.scm.http import HostSessions
from kardinal.translation.recorded import Untraceable
from kardinal_agent.endpoints import EndpointClient, EndpointSecrets, StepHosts
from kardinal_agent.execution import PromotionReconciler, Tools, sources
from kardinal_agent.execution.cleanup import Cleanup
from kardinal_agent.execution.gates import Gates
from kardinal_agent.execution.observer import PromotionObserver
from kardinal_agent.execution.ownership import Ownership, StepRefusals
from kardinal_agent.execution.proposals import Proposals
from kardinal_agent.execution.verified import VerifiedSteps
from kardinal_agent.execution.watches import MergeWatches, ProgressWrites, RefusedCredentials
from kardinal_agent.health import Clusters, Detector, HealthChecks, HealthNamespaces, Refreshes, adapters
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.hosts.others import OtherPullRequests
from kardinal_agent.hosts.poll import HostPoll
from kardinal_agent.kept_secrets import KeptSecrets
from kardinal_agent.metrics import AgentMetrics
from kardinal_agent.readiness import ReadinessReconciler
from kardinal_agent.remotes import RemoteRules, Remotes
from kardinal_agent.secret_versions import SecretVersions
from kardinal_agent.steps import effects
from kardinal_agent.steps.custom import CustomStep
from kardinal_agent.version_record import VersionRecord

__all__ = ["Agent", "AgentOptions", "Parts", "install"]

RETRY = Backoff(base=1.0, cap=300.0, jitter=0.2)
"""Between attempts of a step: one second, doubled up to five minutes."""

PROGRESS_INTERVAL = timedelta(seconds=10)
"""How often a status is written that differs in its message alone, such as the progress of a rollout."""

CONCURRENCY = 64
"""Promotions run at once; most of them wait for a repository, whose writer takes their edits together.

Those with remote repositories have shares of these by host and namespace, so that slow hosts do not take them all.
"""

READINESS_CONCURRENCY = 8
"""Repositories of Pipelines looked at once; they take no shares from promotions."""

POLL_CONCURRENCY = 4
"""Repositories whose open pull requests are listed at once."""

GIT_THREADS = 4

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class AgentOptions:
    """How an agent is set up.

    Without `shard` it serves the PromotionSteps that name none, without `namespace` those of all namespaces. Workloads
    are looked at in `health_namespaces`, without any in all but those of the system and `policy_namespaces`; what
    objects say is repeated from `quote_namespaces` to every Pipeline. Without `allow_git_hosts` every Git host is
    contacted, by http those of `allow_insecure_git`, and without `allow_step_hosts` custom steps ask public hosts
    alone; `git_transfer_max` and `scm_poll_interval` are in seconds.
    `namespace_map` says where the Secrets of a namespace of the control plane are in the agent's own cluster, unless in
    the one of the same name.
    `allow_remote_bases` and `allow_helm_inflation` are about kustomizations that are rendered; with
    `require_renderer_isolation` nothing is rendered on a machine that cannot isolate what renders.
    """

    git_cache_dir: Path
    git_cache_max_bytes: int = CACHE_SIZE
    shard: str | None = None
    namespace: str | None = None
    allow_local_repositories: bool = False
    allow_bypassing_hooks: bool = False
    health_namespaces: tuple[str, ...] = ()
    quote_namespaces: tuple[str, ...] = ()
    policy_namespaces: tuple[str, ...] = ()
    allow_git_hosts: tuple[str, ...] = ()
    allow_insecure_git: tuple[str, ...] = ()
    git_transfer_max: float = 3600.0
    allow_remote_bases: bool = False
    allow_helm_inflation: bool = False
    require_renderer_isolation: bool = False
    scm_poll_interval: float = 300.0
    allow_step_hosts: tuple[str, ...] = ()
    namespace_map: Mapping[str, str] = field(default_factory=dict)
    metrics_address: str | None = None
    metrics_auth: Literal["token", "none"] = "token"
    probe_address: str | None = None


class Parts:
    """The parts of an agent besides its controller; it starts and stops with the manager it was installed on."""

    def __init__(
        self,
        runner: GitRunner,
        repositories: Repositories,
        renderer: ProgramRenderer,
        merges: MergeWatches,
        sessions: HostSessions,
    ) -> None:
        self.runner = runner
        self.repositories = repositories
        self._renderer = renderer
        self._merges = merges
        self._sessions = sessions

    async def start(self) -> None:
        """Say what renderers lack; every part starts when it is first used."""
        if missing := await asyncio.to_thread(self._renderer.missing_walls):
            log.warning("rendering is not isolated", missing=missing, refused=self._renderer.requires_isolation)

    async def stop(self) -> None:
        self._merges.close()
        await self._sessions.close()
        self._renderer.close()
        await self.repositories.close()
        self.runner.close()


def install(manager: Manager, options: AgentOptions, *, extensions: Extensions, local: Manager | None = None) -> Parts:
    """Add the agent's controller to `manager`; `local` watches the agent's own cluster where that is another one."""
    own = local or manager
    clock = manager.clock
    metrics = AgentMetrics(manager.metrics)
    runner = GitRunner(workers=GIT_THREADS)
    addresses = HostAddresses(loopback=options.allow_local_repositories, hosts=options.allow_git_hosts)
    repositories = Repositories(
        options.git_cache_dir,
        runner=runner,
        clock=clock,
        allow_local=options.allow_local_repositories,
        allow_bypassing_hooks=options.allow_bypassing_hooks,
        insecure=options.allow_insecure_git,
        cache_size=options.git_cache_max_bytes,
        on_operation=metrics.git_operation,
        limits=TransferLimits(total=options.git_transfer_max),
        addresses=addresses,
    )
    sessions = HostSessions(clock=clock, user_agent="kardinal-agent", on_quota=metrics.scm_quota, addresses=addresses)
    renderer = ProgramRenderer(
        RendererOptions(
            remote_bases=options.allow_remote_bases,
            helm_inflation=options.allow_helm_inflation,
            require_isolation=options.require_renderer_isolation,
        )
    )
    shard = f"{LABEL_SHARD}={options.shard}" if options.shard else f"!{LABEL_SHARD}"
    steps = manager.informer(PROMOTION_STEP, namespace=options.namespace, labels=shard)
    bundles = manager.informer(BUNDLE, namespace=options.namespace)
    graphs = manager.informer(GRAPH, namespace=options.namespace)
    # Of every namespace: the templates of gates live in those of the policies.
    gates = manager.informer(POLICY_GATE)
    namespaces = own.informer(NAMESPACE)
    channel, shares = Channel(), Shares(CONCURRENCY)
    merges = MergeWatches(channel)
    versions = SecretVersions()
    connect = partial(
        Remotes,
        repositories,
        secrets=own.client,
        clock=clock,
        on_request=metrics.scm_request,
        rules=RemoteRules(hosts=options.allow_git_hosts, namespaces=options.namespace_map),
        providers=extensions.providers,
        sessions=sessions,
        versions=versions,
        kept=KeptSecrets(partial(namespaces.get, None)),
    )
    allowed = HealthNamespaces(
        namespaces,
        allowed=options.health_namespaces,
        policies=options.policy_namespaces,
        quoted=options.quote_namespaces,
    )
    clusters = Clusters(own.dynamic, channel, secrets=own.client, namespaces=options.namespace_map)
    health = HealthChecks(
        adapters(extensions.adapters),
        allowed,
        clusters,
        detector=Detector(own.dynamic, client=own.client, namespaces=allowed, clock=clock),
        refreshes=Refreshes(own.client, allowed, clock=clock),
        clock=clock,
    )
    tools = Tools(
        shard=options.shard,
        registry=extensions.registry,
        steps=effects(extensions.steps),
        custom=CustomStep(
            EndpointClient(StepHosts(options.allow_step_hosts)),
            EndpointSecrets(own.client, options.namespace_map),
            shares,
        ),
        renderer=renderer,
        gates=Gates(gates, bundles, clock),
        health=health,
        remotes=connect(shares=shares),
        status=manager.status,
        observer=PromotionObserver(manager.recorder, metrics),
        merges=merges,
        credentials=RefusedCredentials(versions, channel),
        host_memory=HostMemory(clock, backoff=RETRY),
        progress=ProgressWrites(PROGRESS_INTERVAL, clock=clock),
        proposals=Proposals(manager.client),
        clock=clock,
        backoff=RETRY,
    )
    ownership = Ownership(graphs, bundles)
    manager.controller(
        "promotionstep",
        PromotionReconciler(
            tools,
            steps=steps,
            ownership=ownership,
            refusals=StepRefusals(status=manager.status, recorder=manager.recorder, clock=clock),
            verified=VerifiedSteps(tools, bundles=bundles, ownership=ownership),
            cleanup=Cleanup(manager.client, remotes=tools.remotes, metrics=metrics, clock=clock, backoff=RETRY),
        ),
        sources(
            steps=steps,
            graphs=graphs,
            bundles=bundles,
            gates=gates,
            health=health,
            namespaces=namespaces,
            pushed=channel,
        ),
        concurrency=CONCURRENCY,
    )
    pipelines = manager.informer(PIPELINE, namespace=options.namespace)
    readiness = ReadinessReconciler(
        pipelines,
        steps,
        shard=options.shard,
        registry=extensions.registry,
        remotes=connect(shares=Shares(READINESS_CONCURRENCY)),
        renderer=renderer,
        versions=versions,
        status=manager.status,
        recorder=manager.recorder,
        clock=clock,
    )
    manager.controller("repository-readiness", readiness, readiness.sources(), concurrency=READINESS_CONCURRENCY)
    hosted = {
        name: provider.capabilities
        for name, provider in extensions.providers.items()
        if provider.capabilities.pull_requests and not provider.capabilities.local
    }
    poll = HostPoll(
        steps,
        pipelines,
        channel,
        shard=options.shard,
        remotes=connect(shares=Shares(POLL_CONCURRENCY)),
        providers=hosted,
        others=OtherPullRequests(tools.host_memory, holds=partial(_holds, tools.gates, ownership), clock=clock),
        recorder=manager.recorder,
        interval=timedelta(seconds=options.scm_poll_interval) if options.scm_poll_interval else None,
        clock=clock,
    )
    manager.controller("host-poll", poll, poll.sources(), concurrency=POLL_CONCURRENCY)
    manager.add(clusters)
    parts = Parts(runner, repositories, renderer, merges, sessions)
    manager.add(parts)
    return parts


def _holds(gates: Gates, ownership: Ownership, step: JsonObject) -> Sequence[str]:
    """Return what holds a promotion now; one that no recorded Graph made is held."""
    try:
        return gates.of(ownership.trace(step)).holds()
    except Untraceable as error:
        return [str(error)]


class Agent:
    """An agent as a program of its own."""

    def __init__(
        self,
        options: AgentOptions,
        client: Client,
        *,
        clock: Clock,
        extensions: Extensions,
        local_client: Client | None = None,
    ) -> None:
        name = f"kardinal-agent-{options.shard}" if options.shard else "kardinal-agent"
        # Those who scrape are accounts of the agent's own cluster.
        access = ScrapeAccess(local_client or client, clock=clock)
        self.manager = Manager(
            client,
            clock=clock,
            name=name,
            probe_address=options.probe_address,
            metrics_address=options.metrics_address,
            scrape_access=access if options.metrics_auth == "token" else None,
        )
        program = name.removeprefix("kardinal-")
        self.manager.add(
            VersionRecord(client, program=program, namespace=SYSTEM_NAMESPACE, field_manager=FIELD_MANAGER_AGENT)
        )
        local = Manager(local_client, clock=clock, name=f"{name}-local") if local_client is not None else None
        if local is not None:
            self.manager.add(local)
        parts = install(self.manager, options, extensions=extensions, local=local)
        self.runner = parts.runner
        self.repositories = parts.repositories

    async def start(self) -> None:
        await self.manager.start()

    async def stop(self) -> None:
        await self.manager.stop()
