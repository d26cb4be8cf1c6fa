"""The composition of the agent: its caches, its controllers and their parts.

The same parts run in two places. As a program of its own (`Agent`), the agent serves one shard: it reads PromotionSteps
and gates from the control plane, and Secrets and workloads from its own cluster. Inside the controller (`install` on
its manager), it serves the PromotionSteps without a shard, and both clusters are the same. The API server selects by
shard, so that an agent never gets the PromotionSteps of other shards.

No state here must survive the process: mirrors and caches may be deleted at any time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

import structlog

from kardinal.clock import Clock
from kardinal.extensions import Extensions
from kardinal.git import GitRunner, Repositories, TransferLimits
from kardinal.git.addresses import HostAddresses
from kardinal.git.shares import Shares
from kardinal.kube import Client
from kardinal.objects import GRAPH, NAMESPACE, JsonObject
from kardinal.promotion.api.names import FIELD_MANAGER_AGENT, LABEL_SHARD, SYSTEM_NAMESPACE
from kardinal.promotion.kinds import BUNDLE, METRIC_CHECK, PIPELINE, POLICY_GATE, PROMOTION_STEP
from kardinal.promotion.translation.recorded import Untraceable
from kardinal.rendering.programs import ProgramRenderer, RendererOptions
from kardinal.runtime import Backoff, Channel, Manager
from kardinal.runtime.scrapes import ScrapeAccess
from kardinal.scm.http import HostSessions
from kardinal_agent.endpoints import EndpointClient, EndpointSecrets, StepHosts
from kardinal_agent.execution import PromotionReconciler, Tools, sources
from kardinal_agent.execution.cleanup import Cleanup
from kardinal_agent.execution.events import PromotionEvents
from kardinal_agent.execution.gates import Gates
from kardinal_agent.execution.memory import MergeWatches, ProgressWrites, RefusedCredentials, StepMemory
from kardinal_agent.execution.metrics import EnvironmentMetrics
from kardinal_agent.execution.ownership import Ownership, StepRefusals
from kardinal_agent.execution.proposals import Proposals
from kardinal_agent.execution.rules import Plans
from kardinal_agent.execution.target_drift import DriftDemand
from kardinal_agent.execution.verified import VerifiedSteps
from kardinal_agent.health import Clusters, Detector, HealthChecks, HealthNamespaces, Refreshes, adapters
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.hosts.others import OtherPullRequests
from kardinal_agent.hosts.poll import HostPoll
from kardinal_agent.metrics import AgentMetrics
from kardinal_agent.options import AgentOptions
from kardinal_agent.readiness import ReadinessReconciler
from kardinal_agent.remotes import RemoteRules, Remotes
from kardinal_agent.secret_memory import KeptSecrets, SecretVersions
from kardinal_agent.steps import effects
from kardinal_agent.steps.custom import CustomStep
from kardinal_agent.version_record import VersionRecord

__all__ = ["Agent", "Parts", "install"]

RETRY = Backoff(base=1.0, cap=300.0, jitter=0.2)
"""The delay between the tries of a step: one second, doubled up to five minutes."""

PROGRESS_INTERVAL = timedelta(seconds=10)
"""The interval between two writes of a status that differs in its message alone, as in a rollout."""

CONCURRENCY = 64
"""The most promotions that run at once; most of them wait for a repository, whose writer takes their edits together.

Promotions with remote repositories have shares of them by host and namespace, so that slow hosts do not take all.
"""

READINESS_CONCURRENCY = 8
"""The most repositories that are checked for readiness at once; they take no shares from promotions."""

POLL_CONCURRENCY = 4
"""The most repositories whose open pull requests are listed at once."""

GIT_THREADS = 4

log = structlog.get_logger(__name__)


class Parts:
    """The parts of an agent besides its controllers; they start and stop with the manager of the agent."""

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
        """Log the missing isolation of renderers; each part starts at its first use."""
        if missing := await asyncio.to_thread(self._renderer.missing_walls):
            log.warning("rendering is not isolated", missing=missing, refused=self._renderer.requires_isolation)

    async def stop(self) -> None:
        self._merges.close()
        await self._sessions.close()
        self._renderer.close()
        await self.repositories.close()
        self.runner.close()


def install(manager: Manager, options: AgentOptions, *, extensions: Extensions, local: Manager | None = None) -> Parts:
    """Add the agent's controllers to `manager`; `local` watches the agent's own cluster if that is another one."""
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
    # Of all namespaces, because the templates of gates are in the policy namespaces.
    gates = manager.informer(POLICY_GATE)
    checks = manager.informer(METRIC_CHECK, namespace=options.namespace)
    namespaces = own.informer(NAMESPACE)
    channel = Channel()
    shares = Shares(CONCURRENCY)
    memory = StepMemory(steps)
    merges = MergeWatches(channel, memory.attempt)
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
    clusters = Clusters(own.dynamic, channel, secrets=own.client, namespaces=options.namespace_map, memory=memory.proof)
    health = HealthChecks(
        adapters(extensions.adapters),
        allowed,
        clusters,
        detector=Detector(own.dynamic, client=own.client, namespaces=allowed, clock=clock),
        refreshes=Refreshes(own.client, allowed, clock=clock, memory=memory.proof),
        clock=clock,
        memory=memory.proof,
    )
    tools = Tools(
        shard=options.shard,
        registry=extensions.registry,
        plans=Plans(extensions.registry, unprovable=health.refusal),
        steps=effects(extensions.steps),
        custom=CustomStep(
            EndpointClient(StepHosts(options.allow_step_hosts)),
            EndpointSecrets(own.client, options.namespace_map),
            shares,
        ),
        renderer=renderer,
        gates=Gates(gates, bundles, clock),
        metrics=EnvironmentMetrics(checks),
        health=health,
        remotes=connect(shares=shares),
        status=manager.status,
        events=PromotionEvents(manager.recorder, metrics),
        merges=merges,
        credentials=RefusedCredentials(versions, channel, memory.attempt),
        host_memory=HostMemory(clock, backoff=RETRY, memory=memory.attempt),
        progress=ProgressWrites(PROGRESS_INTERVAL, clock=clock, memory=memory.attempt),
        proposals=Proposals(manager.client),
        memory=memory,
        clock=clock,
        backoff=RETRY,
    )
    ownership = Ownership(graphs, bundles)
    demand = DriftDemand(steps=steps, gates=gates, bundles=bundles)
    manager.controller(
        "promotionstep",
        PromotionReconciler(
            tools,
            steps=steps,
            ownership=ownership,
            refusals=StepRefusals(status=manager.status, recorder=manager.recorder, clock=clock, memory=memory.attempt),
            verified=VerifiedSteps(tools, bundles=bundles, ownership=ownership, demand=demand),
            cleanup=Cleanup(
                manager.client,
                remotes=tools.remotes,
                metrics=metrics,
                clock=clock,
                backoff=RETRY,
                memory=memory.whole,
            ),
        ),
        [
            *sources(
                steps=steps,
                graphs=graphs,
                bundles=bundles,
                gates=gates,
                checks=checks,
                health=health,
                namespaces=namespaces,
                pushed=channel,
            ),
            *demand.sources(),
        ],
        concurrency=CONCURRENCY,
        memory=memory.whole,
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
    manager.controller(
        "repository-readiness",
        readiness,
        readiness.sources(),
        concurrency=READINESS_CONCURRENCY,
        memory=readiness.memory,
    )
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
    """Return the reasons for which a promotion is held now; a PromotionStep without a recorded Graph is always held."""
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
        # Scrapers authenticate with accounts of the agent's own cluster.
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
