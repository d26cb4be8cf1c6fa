"""How an environment proves that it runs what was promoted: the fields of `health`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from kardinal.api.base import DnsLabel, Duration, Model, Name, ShortText, Time
from kardinal.api.refused import refused

__all__ = [
    "AdapterName",
    "Health",
    "HealthArgoCD",
    "HealthFlux",
    "HealthObject",
    "HealthResource",
    "HealthStatus",
    "WorkloadKind",
]

AdapterName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9-]*$")]

WorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"]

_TOOLS = "an object of a delivery tool is named in health.argocd, health.flux, health.argoRollouts or health.flagger"


class HealthResource(Model):
    """The workloads that must run the promoted images, in the environment's namespace unless in another one.

    They are one by its `name`, several by `names`, or those with the labels of `selector`. With none of these they are
    found: every workload there that runs a version of a promoted image, at least one for each image. `kind` is by
    default Deployment where there are names, and any kind otherwise.
    """

    kind: WorkloadKind | None = None
    """Kind of the workload: `Deployment`, `StatefulSet`, `DaemonSet`, `Job` or `CronJob`."""
    name: Name | None = None
    """Name of one workload."""
    names: Annotated[tuple[Name, ...] | None, Field(min_length=1, max_length=32)] = None
    """Names of several workloads."""
    selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]] | None, Field(max_length=16)] = None
    """Labels that the workloads have."""
    namespace: DnsLabel | None = None
    """Namespace of the workloads; by default the environment's name."""
    condition: Literal["Available"] | None = None
    """The condition of a Deployment that must be true, `Available`, which it is by default; other kinds have none."""


class HealthArgoCD(Model):
    """The Argo CD Application that speaks for an environment."""

    name: Name
    """Name of the Application."""
    namespace: DnsLabel = "argocd"
    """Namespace of the Application."""


class HealthFlux(Model):
    """The object of Flux that speaks for an environment."""

    kind: Literal["Kustomization", "HelmRelease"] = "Kustomization"
    """`Kustomization` or `HelmRelease`."""
    name: Name
    """Name of the object."""
    namespace: DnsLabel = "flux-system"
    """Namespace of the object."""


class HealthObject(Model):
    """The object of a delivery tool, in the environment's namespace unless in another one."""

    name: Name
    """Name of the object."""
    namespace: DnsLabel | None = None
    """Namespace of the object; by default the environment's name."""


class Health(Model):
    """How an environment proves that it runs what was promoted.

    A failure that the observed objects tell ends the promotion once it has lasted for `failureGrace`. What was Verified
    is looked at for as long as something depends on it.
    """

    type: AdapterName | None = None
    """The adapter: `resource`, `argocd`, `flux`, `argoRollouts`, `flagger`, or one that is installed. Without it the
    object that is named says it, and without one the object of Argo CD or Flux that deploys the environment's path.
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
    """Refused: `health.resource.kind` is the kind of a workload."""
    name: Annotated[str | None, refused(f"write health.resource.name; {_TOOLS}")] = None
    """Refused: `health.resource.name` is the name of a workload."""
    namespace: Annotated[str | None, refused(f"write health.resource.namespace; {_TOOLS}")] = None
    """Refused: `health.resource.namespace` is the namespace of a workload."""
    cluster: Name | None = None
    """Secret with the kubeconfig of the cluster to look at."""
    timeout: Duration | None = None
    """Time until an environment without proof fails."""
    failure_grace: Duration = timedelta(seconds=30)
    """How long a failure must last before it counts."""
    degraded_after: Duration = timedelta(minutes=1)
    """How long what was Verified must be unhealthy before the environment is Degraded."""


class HealthStatus(Model):
    """How the proof of a promotion stands."""

    type: AdapterName | None = None
    """The adapter that was chosen, where `health` names none: `argocd`, `flux`, `resource`, or the delegate."""
    kind: Literal["Application", "Kustomization", "HelmRelease"] | None = None
    """Kind of the object that was found to deploy the environment: `Application`, `Kustomization` or `HelmRelease`."""
    name: Name | None = None
    """Name of that object."""
    namespace: DnsLabel | None = None
    """Namespace of that object."""
    refreshed_at: Time | None = None
    """When it was decided to ask the tool to look at the repository, which is done once."""
    failing_since: Time | None = None
    """Since when the observed objects have said, at every look, that it will not become healthy."""
    reason: ShortText | None = None
    """Why, in one word."""
    failed_attempt: ShortText | None = None
    """The attempt of a tool that failed: the failure lasts while the tool tries the same again."""
