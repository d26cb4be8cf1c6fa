"""The metrics of promotions, health and Git; the metrics of Bundles and gates belong to the control plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from kardinal.runtime import BoundedLabels

__all__ = ["AgentMetrics", "Figure"]

_GIT_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_HEALTH_SECONDS = (0.1, 0.5, 1, 5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600)
_LEAD_SECONDS = (1, 5, 15, 60, 300, 900, 1800, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 72 * 3600, 168 * 3600)


@dataclass(frozen=True, slots=True)
class Figure:
    """One increment of a counter, or one duration of `seconds`; the first label is the environment."""

    name: Literal["opened", "merged", "out_of_band", "failed", "abandoned", "health", "lead_time"]
    labels: tuple[str, ...]
    seconds: float | None = None


class AgentMetrics:
    """The metrics of one manager, in its own registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._environments = BoundedLabels()
        self._hosts = BoundedLabels()
        self._counters = {
            "opened": Counter(
                "kardinal_promotions_opened", "Pull requests opened", ["environment", "approval"], registry=registry
            ),
            "merged": Counter("kardinal_promotions_merged", "Pull requests merged", ["environment"], registry=registry),
            "out_of_band": Counter(
                "kardinal_promotions_merged_out_of_band",
                "Pull requests merged while a gate was closed",
                ["environment"],
                registry=registry,
            ),
            "failed": Counter(
                "kardinal_promotions_failed", "Promotions failed", ["environment", "reason"], registry=registry
            ),
            "abandoned": Counter(
                "kardinal_proposals_abandoned",
                "Proposals of deleted promotions that could not be withdrawn",
                ["environment"],
                registry=registry,
            ),
        }
        self._durations = {
            "health": Histogram(
                "kardinal_health_check_duration_seconds",
                "Time from the change being in place to the verdict on it",
                ["environment", "result"],
                buckets=_HEALTH_SECONDS,
                registry=registry,
            ),
            "lead_time": Histogram(
                "kardinal_promotion_lead_time_seconds",
                "Time from the creation of a Bundle to an environment being Verified",
                ["environment"],
                buckets=_LEAD_SECONDS,
                registry=registry,
            ),
        }
        self._git = Histogram(
            "kardinal_git_operation_duration_seconds",
            "Duration of Git operations",
            ["operation", "result"],
            buckets=_GIT_SECONDS,
            registry=registry,
        )
        self._scm = Counter(
            "kardinal_scm_api_requests", "Requests about pull requests", ["endpoint", "status"], registry=registry
        )
        self._quota = Gauge(
            "kardinal_scm_api_remaining",
            "Requests that the host said are left, in its last answer that said so",
            ["host"],
            registry=registry,
        )

    def promotion(self, figure: Figure, *, namespace: str) -> None:
        """Add one figure of a promotion in `namespace` to the metrics."""
        environment, *others = figure.labels
        labels = (*self._environments.admit(environment, namespace=namespace), *others)
        if figure.seconds is None:
            self._counters[figure.name].labels(*labels).inc()
        else:
            self._durations[figure.name].labels(*labels).observe(figure.seconds)

    def git_operation(self, operation: str, seconds: float, result: str) -> None:
        """Count one operation of `Repositories`, with its duration."""
        self._git.labels(operation, result).observe(seconds)

    def scm_request(self, endpoint: str, status: str) -> None:
        """Count one request to the API of a host."""
        self._scm.labels(endpoint, status).inc()

    def scm_quota(self, host: str, remaining: int) -> None:
        """Set the remaining quota that `host` has reported."""
        self._quota.labels(*self._hosts.admit(host, namespace=host)).set(remaining)
