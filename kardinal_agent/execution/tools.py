"""The collaborators of an agent, shared by all of its promotions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kardinal.clock import Clock
from kardinal.promotion.steps.registry import Registry
from kardinal.rendering.renderer import Renderer
from kardinal.runtime import Backoff, StatusWriter
from kardinal_agent.execution.events import PromotionEvents
from kardinal_agent.execution.gates import Gates
from kardinal_agent.execution.memory import MergeWatches, ProgressWrites, RefusedCredentials, StepMemory
from kardinal_agent.execution.metrics import EnvironmentMetrics
from kardinal_agent.execution.proposals import Proposals
from kardinal_agent.execution.rules import Plans
from kardinal_agent.health import HealthChecks
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.remotes import Remotes
from kardinal_agent.steps import Step

__all__ = ["Tools"]


@dataclass(frozen=True)
class Tools:
    """The parts that all promotions of an agent share."""

    shard: str | None
    registry: Registry
    plans: Plans
    steps: Mapping[str, Step]
    """The effect of every step of the registry, by name."""
    custom: Step
    """The effect of a step that the registry does not have."""
    renderer: Renderer
    gates: Gates
    metrics: EnvironmentMetrics
    health: HealthChecks
    remotes: Remotes
    status: StatusWriter
    events: PromotionEvents
    merges: MergeWatches
    credentials: RefusedCredentials
    host_memory: HostMemory
    progress: ProgressWrites
    proposals: Proposals
    memory: StepMemory
    clock: Clock
    backoff: Backoff
