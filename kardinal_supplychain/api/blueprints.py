"""ClusterSupplyChain and ClusterDelivery: which owners they select, and the resources that are stamped for them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kardinal.models.base import Model, Resource, Status
from kardinal.objects import ResourceType
from kardinal_supplychain.api.fields import (
    BlueprintParam,
    FieldRequirement,
    LabelRequirement,
    Labels,
    ObjectName,
    ResourceName,
    ServiceAccountReference,
    by_name,
    rules,
)
from kardinal_supplychain.api.kinds import CLUSTER_DELIVERY, CLUSTER_SUPPLY_CHAIN

__all__ = [
    "BlueprintResource",
    "BlueprintSpec",
    "ClusterDelivery",
    "ClusterSupplyChain",
    "DeliveryResource",
    "DeploymentInput",
    "OptionSelector",
    "ResourceInput",
    "SupplyChainResource",
    "TemplateOption",
    "TemplateReference",
]

_Requirements = Annotated[tuple[LabelRequirement, ...], Field(max_length=64)]
_FieldRequirements = Annotated[tuple[FieldRequirement, ...], Field(max_length=64)]


class OptionSelector(Model):
    """Requirements on the owner, all of which must hold."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels with their values."""
    match_expressions: _Requirements = ()
    """Requirements on labels."""
    match_fields: _FieldRequirements = ()
    """Requirements on fields."""


class TemplateOption(Model):
    """One of several templates, for the owners that its selector selects."""

    model_config = rules(("has(self.name) != has(self.passThrough)", "write either name or passThrough"))

    name: ObjectName | None = None
    """Name of the template. Not beside `passThrough`."""
    pass_through: ResourceName | None = None
    """Name of an input whose value is the output; nothing is stamped. Not beside `name`."""
    selector: OptionSelector
    """The owners that it is for."""


class TemplateReference(Model):
    """A template by name, or several of which one is chosen for each owner."""

    model_config = rules(
        ("has(self.name) != has(self.options)", "write either name or options"),
        (
            "!has(self.options) || self.options.filter(option, has(option.passThrough)).size() <= 1",
            "only one of options may have passThrough",
        ),
    )

    name: ObjectName | None = None
    """Name of the template. Not beside `options`."""
    options: Annotated[tuple[TemplateOption, ...] | None, Field(min_length=2, max_length=32)] = None
    """Templates of which one is chosen. Not beside `name`."""


class SupplyChainTemplate(TemplateReference):
    kind: Literal["ClusterSourceTemplate", "ClusterImageTemplate", "ClusterConfigTemplate", "ClusterTemplate"]
    """Kind of the template: `ClusterSourceTemplate`, `ClusterImageTemplate`, `ClusterConfigTemplate`, or
    `ClusterTemplate`, which has no output.
    """


class DeliveryTemplate(TemplateReference):
    kind: Literal["ClusterSourceTemplate", "ClusterDeploymentTemplate", "ClusterConfigTemplate", "ClusterTemplate"]
    """Kind of the template: `ClusterSourceTemplate`, `ClusterDeploymentTemplate`, `ClusterConfigTemplate`, or
    `ClusterTemplate`, which has no output.
    """


class ResourceInput(Model):
    """An output of another resource, under a name for the template."""

    name: ResourceName
    """Name under which the template reads it."""
    resource: ResourceName
    """Name of the resource that it comes from."""


class DeploymentInput(Model):
    """The deployment that a resource waits for, or deploys."""

    resource: ResourceName
    """Name of the resource that it comes from."""


_Inputs = Annotated[tuple[ResourceInput, ...], by_name(32)]


class BlueprintResource(Model):
    """The fields that resources of both kinds of blueprint share."""

    name: ResourceName
    """Name of the resource, unique in the blueprint."""
    params: Annotated[tuple[BlueprintParam, ...], by_name(256)] = ()
    """Parameters for the template; one of the blueprint with the same name is ignored."""
    sources: _Inputs = ()
    """Inputs `url` and `revision`, read as `sources.NAME.url`."""
    configs: _Inputs = ()
    """Inputs `config`, read as `configs.NAME.config`."""


class SupplyChainResource(BlueprintResource):
    template_ref: SupplyChainTemplate
    """The template that the resource is stamped from."""
    images: _Inputs = ()
    """Inputs `image`, read as `images.NAME.image`."""


class DeliveryResource(BlueprintResource):
    template_ref: DeliveryTemplate
    """The template that the resource is stamped from."""
    deployment: DeploymentInput | None = None
    """The input of a ClusterDeploymentTemplate, read as `deployment.url` and `deployment.revision`."""


class BlueprintSpec(Model):
    """The fields that both kinds of blueprint share."""

    selector: Labels = Field(default_factory=dict)
    """Labels of the owners, with their values."""
    selector_match_expressions: _Requirements = ()
    """Requirements on labels of the owners."""
    selector_match_fields: _FieldRequirements = ()
    """Requirements on fields of the owners."""
    params: Annotated[tuple[BlueprintParam, ...], by_name(256)] = ()
    """Parameters for all templates."""
    service_account_ref: ServiceAccountReference | None = None
    """The ServiceAccount for owners that name none."""


class SupplyChainSpec(BlueprintSpec):
    resources: Annotated[tuple[SupplyChainResource, ...], by_name(100)]
    """The objects that are stamped for each Workload."""


class DeliverySpec(BlueprintSpec):
    resources: Annotated[tuple[DeliveryResource, ...], by_name(100)]
    """The objects that are stamped for each Deliverable."""


class ClusterSupplyChain(Resource):
    """ClusterSupplyChain: the resources that are stamped for the Workloads that it selects."""

    resource: ClassVar[ResourceType] = CLUSTER_SUPPLY_CHAIN

    spec: SupplyChainSpec
    """The Workloads that it selects, and what is stamped for them."""
    status: Status = Field(default_factory=Status)
    """Conditions: TemplatesReady, Ready."""


class ClusterDelivery(Resource):
    """ClusterDelivery: the resources that are stamped for the Deliverables that it selects."""

    resource: ClassVar[ResourceType] = CLUSTER_DELIVERY

    spec: DeliverySpec
    """The Deliverables that it selects, and what is stamped for them."""
    status: Status = Field(default_factory=Status)
    """Conditions: TemplatesReady, Ready."""
