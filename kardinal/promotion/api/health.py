"""The fields of `health`: how an environment proves that it runs the promoted versions."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from kardinal.models.base import DnsLabel, Duration, Model, Name, ShortText, Time
from kardinal.models.refused import refused
from kardinal.promotion.api.health_adapters import (
    TOOL_FIELDS,
    AdapterName,
    HealthArgoCD,
    HealthFlux,
    HealthObject,
    HealthResource,
)

__all__ = ["Health", "HealthStatus"]

_TOOLS = f"an object of a delivery tool is named in {', '.join(TOOL_FIELDS[:-1])} or {TOOL_FIELDS[-1]}"


class Health(Model):
    """How an environment proves that it runs the promoted versions.

    A failure that the observed objects report ends the promotion once it has lasted for `failureGrace`. After Verified,
    the environment is observed for as long as another promotion depends on it.
    """

    type: AdapterName | None = None
    """The adapter: `resource`, `argocd`, `flux`, `argoRollouts`, `flagger`, or an installed one.

    Defaults to the adapter of the object that is named here, or else to Argo CD or Flux, whichever deploys the
    environment's path.
    """
    resource: HealthResource | None = None
    """For `resource`: the workloads."""
    argocd: HealthArgoCD | None = None
    """For `argocd`: the Application."""
    flux: HealthFlux | None = None
    """For `flux`: the Kustomization or HelmRelease."""
    argo_rollouts: HealthObject | None = None
    """For `argoRollouts`: the Rollout."""
    flagger: HealthObject | None = None
    """For `flagger`: the Canary."""
    kind: Annotated[str | None, refused(f"write health.resource.kind; {_TOOLS}")] = None
    """Refused: use `health.resource.kind` for the kind of a workload."""
    name: Annotated[str | None, refused(f"write health.resource.name; {_TOOLS}")] = None
    """Refused: use `health.resource.name` for the name of a workload."""
    namespace: Annotated[str | None, refused(f"write health.resource.namespace; {_TOOLS}")] = None
    """Refused: use `health.resource.namespace` for the namespace of a workload."""
    cluster: Name | None = None
    """Secret with the kubeconfig of the cluster to observe. Defaults to the agent's own cluster."""
    timeout: Duration | None = None
    """Time until an environment that is not proven healthy counts as Failed. Defaults to 10m."""
    failure_grace: Duration = timedelta(seconds=30)
    """How long a reported failure must last before it counts. Defaults to 30s."""
    degraded_after: Duration = timedelta(minutes=1)
    """How long a Verified environment must be unhealthy before it is Degraded. Defaults to 1m."""


class HealthStatus(Model):
    """The progress of the health check of a promotion."""

    type: AdapterName | None = None
    """The adapter that was chosen if `health` names none: `argocd`, `flux`, `resource`, or the delegate."""
    kind: Literal["Application", "Kustomization", "HelmRelease"] | None = None
    """Kind of the object that deploys the environment, if it was detected: `Application`, `Kustomization` or
    `HelmRelease`.
    """
    name: Name | None = None
    """Name of the object that deploys the environment."""
    namespace: DnsLabel | None = None
    """Namespace of the object that deploys the environment."""
    refreshed_at: Time | None = None
    """The time at which kardinal decided to ask the tool, once, to look at the repository."""
    failing_since: Time | None = None
    """The time since which every observation has reported a failure."""
    reason: ShortText | None = None
    """The reason of the failure that lasts since `failingSince`, in one word."""
    failed_attempt: ShortText | None = None
    """The attempt of a tool that failed. The failure lasts while the tool retries the same attempt."""
