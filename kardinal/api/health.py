"""How an environment proves that it runs what was promoted: the fields of `health`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from kardinal.api.base import DnsLabel, Duration, Model, Name, ShortText, Time

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


class HealthResource(Model):
    """The workloads that must run the promoted images, in the environment's namespace unless in another one.

    They are one by its `name`, several by `names`, or those with the labels of `selector`. With none of these they are
    found: every workload there that runs a version of a promoted image, at least one for each image. `kind` is by
    default Deployment where there are names, and any kind otherwise.
    """

    kind: WorkloadKind | None = None
    name: Name | None = None
    names: Annotated[tuple[Name, ...] | None, Field(min_length=1, max_length=32)] = None
    selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]] | None, Field(max_length=16)] = None
    namespace: DnsLabel | None = None
    condition: Literal["Available"] = "Available"


class HealthArgoCD(Model):
    """The Argo CD Application that speaks for an environment."""

    name: Name
    namespace: DnsLabel = "argocd"


class HealthFlux(Model):
    """The object of Flux that speaks for an environment."""

    kind: Literal["Kustomization", "HelmRelease"] = "Kustomization"
    name: Name
    namespace: DnsLabel = "flux-system"


class HealthObject(Model):
    """The object of a delivery tool, in the environment's namespace unless in another one."""

    name: Name
    namespace: DnsLabel | None = None


class Health(Model):
    """How an environment proves that it runs what was promoted.

    A failure that the observed objects tell ends the promotion once it has lasted for `failureGrace`.
    """

    type: AdapterName | None = None
    resource: HealthResource | None = None
    argocd: HealthArgoCD | None = None
    flux: HealthFlux | None = None
    argo_rollouts: HealthObject | None = None
    flagger: HealthObject | None = None
    cluster: Name | None = None
    timeout: Duration | None = None
    failure_grace: Duration = timedelta(seconds=30)


class HealthStatus(Model):
    """How the proof of a promotion stands."""

    failing_since: Time | None = None
    """Since when the observed objects have said, at every look, that it will not become healthy."""
    reason: ShortText | None = None
    """Why, in one word."""
