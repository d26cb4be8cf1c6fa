"""How an environment proves what it runs, one module per adapter."""

from kardinal_agent.health.checks import HealthChecks
from kardinal_agent.health.clusters import Clusters
from kardinal_agent.health.namespaces import HealthNamespaces, pipelines_from
from kardinal_agent.health.registry import adapters
from kardinal_agent.health.verdict import (
    Adapter,
    Objects,
    Promotion,
    State,
    Verdict,
    Watched,
    failed,
    healthy,
    progressing,
)

__all__ = [
    "Adapter",
    "Clusters",
    "HealthChecks",
    "HealthNamespaces",
    "Objects",
    "Promotion",
    "State",
    "Verdict",
    "Watched",
    "adapters",
    "failed",
    "healthy",
    "pipelines_from",
    "progressing",
]
