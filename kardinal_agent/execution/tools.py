"""The parts of an agent that all its promotions share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kardinal.runtime import Backoff, Clock, StatusWriter
from kardinal.steps.registry import Registry
from kardinal.steps.rendering import Renderer
from kardinal_agent.execution.gates import Gates
from kardinal_agent.execution.observer import PromotionObserver
from kardinal_agent.execution.proposals import Proposals
from kardinal_agent.execution.watches import MergeWatches, ProgressWrites, RefusedCredentials
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
    steps: Mapping[str, Step]
    """The effect of every step of the registry, by name."""
    custom: Step
    """The effect of a step that the registry does not have."""
    renderer: Renderer
    gates: Gates
    health: HealthChecks
    remotes: Remotes
    status: StatusWriter
    observer: PromotionObserver
    merges: MergeWatches
    credentials: RefusedCredentials
    host_memory: HostMemory
    progress: ProgressWrites
    proposals: Proposals
    clock: Clock
    backoff: Backoff
