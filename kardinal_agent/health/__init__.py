"""Health checks: prove that an environment runs the promoted version, with one module per adapter.

checks, watching, clusters        ask the adapter, watch its objects, in this or another cluster
verdict, subject                  the contract of adapters, and helpers to make verdicts
resource, workloads, pods         adapter `resource`: Deployments, StatefulSets, DaemonSets, Jobs
argocd…, flux…                    adapters of GitOps tools
argo_rollouts, flagger, delegation   adapters of delivery controllers, and waiting for one beside the proof
detection, detector               finding the object that deploys an environment
namespaces                        which namespaces are read, and which texts are quoted
upkeep, deadlines, refresh        Degraded after Verified; timeouts; asking a tool to read the repository
"""

from kardinal_agent.health.checks import CheckResult, HealthChecks
from kardinal_agent.health.clusters import Clusters
from kardinal_agent.health.detection import Detected, undetected
from kardinal_agent.health.detector import Detection, Detector
from kardinal_agent.health.namespaces import PIPELINES_FROM, HealthNamespaces, pipelines_from
from kardinal_agent.health.refresh import Refreshes
from kardinal_agent.health.registry import adapters
from kardinal_agent.health.verdict import (
    Adapter,
    Applied,
    PromotionFacts,
    State,
    Verdict,
    Watched,
    WatchedObjects,
    failed,
    healthy,
    progressing,
)
from kardinal_agent.health.watching import ObjectUnreadable

__all__ = [
    "PIPELINES_FROM",
    "Adapter",
    "Applied",
    "CheckResult",
    "Clusters",
    "Detected",
    "Detection",
    "Detector",
    "HealthChecks",
    "HealthNamespaces",
    "ObjectUnreadable",
    "PromotionFacts",
    "Refreshes",
    "State",
    "Verdict",
    "Watched",
    "WatchedObjects",
    "adapters",
    "failed",
    "healthy",
    "pipelines_from",
    "progressing",
    "undetected",
]
