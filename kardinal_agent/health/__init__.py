"""How an environment proves what it runs, one module per adapter."""

from kardinal_agent.health.checks import Finding, HealthChecks
from kardinal_agent.health.clusters import Clusters
from kardinal_agent.health.detection import Detected, undetected
from kardinal_agent.health.detector import Detection, Detector
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces, pipelines_from
from kardinal_agent.health.refresh import Refreshes
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
from kardinal_agent.health.watching import Unreadable

__all__ = [
    "PIPELINES_FROM",
    "Adapter",
    "Clusters",
    "Detected",
    "Detection",
    "Detector",
    "Finding",
    "HealthChecks",
    "HealthNamespaces",
    "Objects",
    "Promotion",
    "Refreshes",
    "State",
    "Unreadable",
    "Verdict",
    "Watched",
    "adapters",
    "failed",
    "healthy",
    "pipelines_from",
    "progressing",
    "undetected",
]
