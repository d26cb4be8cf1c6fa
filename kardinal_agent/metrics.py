"""The figures of promotions, health and Git (DD 3.13). Those of Bundles and gates belong to the control plane."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

__all__ = ["AgentMetrics"]

_GIT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_HEALTH_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_LEAD_SECONDS = (1, 5, 15, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600)


class AgentMetrics:
    """One set per manager, registered with its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.opened = Counter(
            "kardinal_promotions_opened", "Pull requests opened", ["environment", "approval"], registry=registry
        )
        self.merged = Counter("kardinal_promotions_merged", "Pull requests merged", ["environment"], registry=registry)
        self.failed = Counter(
            "kardinal_promotions_failed", "Promotions failed", ["environment", "reason"], registry=registry
        )
        self.health = Histogram(
            "kardinal_health_check_duration_seconds",
            "Time from the change being in place to the verdict on it",
            ["environment", "result"],
            buckets=_HEALTH_SECONDS,
            registry=registry,
        )
        self.git = Histogram(
            "kardinal_git_operation_duration_seconds",
            "Duration of Git operations",
            ["operation", "result"],
            buckets=_GIT_SECONDS,
            registry=registry,
        )
        self.scm = Counter(
            "kardinal_scm_api_requests", "Requests about pull requests", ["endpoint", "status"], registry=registry
        )
        self.lead_time = Histogram(
            "kardinal_promotion_lead_time_seconds",
            "Time from the creation of a Bundle to an environment being Verified",
            ["environment"],
            buckets=_LEAD_SECONDS,
            registry=registry,
        )

    def git_operation(self, operation: str, seconds: float, result: str) -> None:
        """What `Repositories` tells after each operation."""
        self.git.labels(operation, result).observe(seconds)

    def scm_request(self, endpoint: str, status: str) -> None:
        """What `PullRequests` tell after each request."""
        self.scm.labels(endpoint, status).inc()
