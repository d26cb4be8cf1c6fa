"""Workload and Deliverable: what developers write, and blueprints select."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kardinal.models.base import Model, Resource
from kardinal.objects import ResourceType
from kardinal_supplychain.api.fields import JsonFields, ObjectName, OwnerParam, OwnerSource, by_name
from kardinal_supplychain.api.kinds import DELIVERABLE, WORKLOAD
from kardinal_supplychain.api.status import BlueprintReference, OwnerStatus

__all__ = ["Deliverable", "DeliverableSpec", "OwnerSpec", "Workload", "WorkloadSpec"]


class ServiceReference(Model):
    """The service that a claim names."""

    api_version: Annotated[str, Field(max_length=317)]
    """Group and version of the service."""
    kind: Annotated[str, Field(max_length=63)]
    """Kind of the service."""
    name: ObjectName
    """Name of the service."""


class ServiceClaim(Model):
    """A service that the application binds to."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the claim."""
    ref: ServiceReference | None = None
    """The service."""


class Build(Model):
    """How the application is built."""

    env: Annotated[tuple[JsonFields, ...], Field(max_length=256)] = ()
    """Environment variables of the build, as in a container."""


class OwnerSpec(Model):
    """The fields that Workload and Deliverable share."""

    params: Annotated[tuple[OwnerParam, ...], by_name(256)] = ()
    """Parameters for the templates."""
    source: OwnerSource | None = None
    """Source code of a Workload, configuration of a Deliverable."""
    service_account_name: Annotated[str | None, Field(max_length=253)] = None
    """ServiceAccount of the owner's namespace with whose rights objects are stamped. Defaults to that of the
    blueprint, and to `default`.
    """


class WorkloadSpec(OwnerSpec):
    build: Build | None = None
    """How the application is built."""
    env: Annotated[tuple[JsonFields, ...], Field(max_length=256)] = ()
    """Environment variables of the application, as in a container."""
    image: Annotated[str | None, Field(max_length=1024)] = None
    """Image of the application, if it is built already."""
    resources: JsonFields | None = None
    """Requests and limits of the application, as in a container."""
    service_claims: Annotated[tuple[ServiceClaim, ...], by_name(64)] = ()
    """Services that the application binds to."""


class DeliverableSpec(OwnerSpec):
    pass


class WorkloadStatus(OwnerStatus):
    supply_chain_ref: BlueprintReference | None = None
    """The ClusterSupplyChain that was matched."""


class DeliverableStatus(OwnerStatus):
    delivery_ref: BlueprintReference | None = None
    """The ClusterDelivery that was matched."""


class Workload(Resource):
    """Workload: an application of a developer, which a ClusterSupplyChain brings from source to what runs."""

    resource: ClassVar[ResourceType] = WORKLOAD

    spec: WorkloadSpec = Field(default_factory=WorkloadSpec)
    """The source of the application, and parameters for the templates."""
    status: WorkloadStatus = Field(default_factory=WorkloadStatus)
    """The state of the resources that were stamped for it."""


class Deliverable(Resource):
    """Deliverable: configuration that a ClusterDelivery deploys and validates."""

    resource: ClassVar[ResourceType] = DELIVERABLE

    spec: DeliverableSpec = Field(default_factory=DeliverableSpec)
    """The source of the configuration, and parameters for the templates."""
    status: DeliverableStatus = Field(default_factory=DeliverableStatus)
    """The state of the resources that were stamped for it."""
