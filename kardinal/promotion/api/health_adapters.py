"""The health adapters: values of `health.type`, the models of the objects that each one takes, and their defaults.

No other module of `kardinal` knows an adapter by its name. To add one, declare it in this module, with a model of its
objects if none of these fits; add the field of that name to `kardinal.promotion.api.health.Health`; and write its code
in `kardinal_agent.health`, with a line in `registry` there. An adapter of another package is a declaration with
`adapter` and has no field.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from kardinal.models.base import DnsLabel, Model, Name

__all__ = [
    "ARGOCD",
    "ARGO_ROLLOUTS",
    "BUILTIN_ADAPTERS",
    "FLAGGER",
    "FLUX",
    "NO_DELEGATE",
    "RESOURCE",
    "TOOL_FIELDS",
    "AdapterDeclaration",
    "AdapterName",
    "DelegateName",
    "HealthArgoCD",
    "HealthFlux",
    "HealthObject",
    "HealthResource",
]

AdapterName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-zA-Z0-9-]*$")]

WorkloadKind = Literal["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"]


class HealthResource(Model):
    """The workloads that must run the promoted images, by default in the environment's namespace.

    Select one by `name`, several by `names`, or those with the labels in `selector`. With none of these, kardinal finds
    them: every workload in the namespace that runs a version of a promoted image, and at least one for each image.
    `kind` defaults to Deployment if there is a name, and otherwise to any kind.
    """

    kind: WorkloadKind | None = None
    """Kind of the workload: `Deployment`, `StatefulSet`, `DaemonSet`, `Job` or `CronJob`."""
    name: Name | None = None
    """Name of one workload."""
    names: Annotated[tuple[Name, ...] | None, Field(min_length=1, max_length=32)] = None
    """Names of several workloads."""
    selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]] | None, Field(max_length=16)] = None
    """Labels that the workloads must have."""
    namespace: DnsLabel | None = None
    """Namespace of the workloads. Defaults to the name of the environment."""
    condition: Literal["Available"] | None = None
    """The condition of a Deployment that must be true.

    Defaults to `Available` for Deployments; other kinds have none.
    """


class HealthArgoCD(Model):
    """The Argo CD Application that deploys an environment and reports its health."""

    name: Name
    """Name of the Application."""
    namespace: DnsLabel = "argocd"
    """Namespace of the Application. Defaults to `argocd`."""


class HealthFlux(Model):
    """The Flux object that deploys an environment and reports its health."""

    kind: Literal["Kustomization", "HelmRelease"] = "Kustomization"
    """`Kustomization` or `HelmRelease`. Defaults to `Kustomization`."""
    name: Name
    """Name of the object."""
    namespace: DnsLabel = "flux-system"
    """Namespace of the object. Defaults to `flux-system`."""


class HealthObject(Model):
    """The object of a delivery tool, by default in the environment's namespace."""

    name: Name
    """Name of the object."""
    namespace: DnsLabel | None = None
    """Namespace of the object. Defaults to the name of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterDeclaration:
    """A health adapter, and all data about it that translation and agent need.

    `adapter` creates the agent's code of an adapter from another package; that of built-in adapters is in
    `kardinal_agent.health`.
    """

    name: str
    """The value of `health.type`. For a built-in adapter also the field of `health` that names its objects."""
    adapter: Callable[[], Any] | None = None
    attribute: str = ""
    """The attribute of `Health` for that field, such as `argo_rollouts`. Empty for an adapter of another package."""
    default: Callable[[], Model] | None = None
    """Creates the objects if `health` names none. None if a Pipeline must name them."""
    delegate: Callable[[str], Model] | None = None
    """Creates the object that `delivery.delegate` waits for, from the name of the Pipeline, if `health` names none.

    None for an adapter that cannot be a delegate.
    """
    complete: Callable[[Any], Any] | None = None
    """Adds the defaults that depend on other fields of the objects."""
    stated: tuple[str, ...] = ()
    """The attributes of the objects that are optional in a Pipeline and required in a PromotionStep."""


NO_DELEGATE: Final = "none"
"""The value of `delivery.delegate` for an environment that waits for no delivery controller."""


def _same_name(pipeline: str) -> HealthObject:
    return HealthObject(name=pipeline)


def _with_condition(resource: HealthResource) -> HealthResource:
    """Add the condition that is checked for Deployments as well; other kinds of workloads do not have it."""
    of_deployments = resource.kind in (None, "Deployment")
    return resource.model_copy(update={"condition": "Available"}) if of_deployments else resource


RESOURCE = AdapterDeclaration(
    name="resource", attribute="resource", default=HealthResource, complete=_with_condition, stated=("namespace",)
)
ARGOCD = AdapterDeclaration(name="argocd", attribute="argocd")
FLUX = AdapterDeclaration(name="flux", attribute="flux")
ARGO_ROLLOUTS = AdapterDeclaration(name="argoRollouts", attribute="argo_rollouts", delegate=_same_name)
FLAGGER = AdapterDeclaration(name="flagger", attribute="flagger", delegate=_same_name)

BUILTIN_ADAPTERS: Final[Mapping[str, AdapterDeclaration]] = {
    adapter.name: adapter for adapter in (RESOURCE, ARGOCD, FLUX, ARGO_ROLLOUTS, FLAGGER)
}
"""Every health adapter of this version, by name."""

TOOL_FIELDS: Final = tuple(f"health.{name}" for name in BUILTIN_ADAPTERS if name != RESOURCE.name)
"""The fields that name an object of a delivery tool."""

if TYPE_CHECKING:
    DelegateName = str
else:
    DelegateName = Literal[(NO_DELEGATE, *(each.name for each in BUILTIN_ADAPTERS.values() if each.delegate))]
