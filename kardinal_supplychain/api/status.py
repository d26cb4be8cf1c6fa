"""The status of owners: what was stamped for each resource of the blueprint, with its inputs, outputs and health."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kardinal.models.base import Condition, Model, Status, Time
from kardinal_supplychain.api.fields import ObjectName, ResourceName, by_name

__all__ = [
    "BlueprintReference",
    "InputStatus",
    "LastRun",
    "OrphanReference",
    "OutputStatus",
    "OwnerStatus",
    "ResourceStatus",
    "RunOutcome",
    "StampedReference",
]

_Kind = Annotated[str, Field(max_length=63)]
_ApiVersion = Annotated[str, Field(max_length=317)]

RunOutcome = Literal["unfinished", "succeeded", "failed"]


class BlueprintReference(Model):
    """The blueprint that an owner matches, or a template of it."""

    api_version: _ApiVersion | None = None
    """Group and version."""
    kind: _Kind
    """Kind."""
    name: ObjectName
    """Name."""


class StampedReference(Model):
    """The object that was stamped for a resource."""

    api_version: _ApiVersion
    """Group and version of the object."""
    kind: _Kind
    """Kind of the object."""
    namespace: Annotated[str, Field(max_length=63)]
    """Namespace of the object."""
    name: ObjectName
    """Name of the object."""
    resource: Annotated[str, Field(max_length=317)]
    """Its kind as kubectl takes it, such as `images.kpack.io`."""
    uid: Annotated[str | None, Field(max_length=63)] = None
    """UID of the object."""


class OrphanReference(StampedReference):
    """An object that was stamped and that the blueprint no longer asks for."""

    resource_name: ResourceName | None = None
    """Name of the resource that it was stamped for."""


class LastRun(Model):
    """The last run of a resource or a Runnable, also when it is gone."""

    name: ObjectName
    """Name of the object."""
    uid: Annotated[str, Field(max_length=63)]
    """UID of the object."""
    stamp: Annotated[str, Field(max_length=64)]
    """Hash of the object as it was rendered."""
    sequence: Annotated[int, Field(ge=0)]
    """Its number: the newest run has the highest."""
    outcome: RunOutcome
    """`unfinished`, `succeeded` or `failed`. A run that finished is not repeated until its render changes."""
    outputs_of: Annotated[int, Field(ge=0)] = 0
    """The number of the run that the outputs stem from; 0 if none has outputs yet."""


class InputStatus(Model):
    """A resource whose output this one takes."""

    name: ResourceName
    """Name of the resource."""
    digest: Annotated[str | None, Field(max_length=160)] = None
    """Digest of the output that was taken."""


class OutputStatus(Model):
    """An output of a resource."""

    name: ResourceName
    """`url`, `revision`, `image` or `config`."""
    preview: Annotated[str, Field(max_length=2048)]
    """The beginning of the value as YAML."""
    digest: Annotated[str, Field(max_length=160)]
    """Digest of the whole value."""
    last_transition_time: Time
    """The time at which the value changed last."""


class ResourceStatus(Model):
    """The state of one resource of the blueprint."""

    name: ResourceName
    """Name of the resource."""
    template_ref: BlueprintReference | None = None
    """The template that was chosen."""
    stamped_ref: StampedReference | None = None
    """The object that was stamped."""
    last_run: LastRun | None = None
    """The last run, of a template that stamps runs; and an object of another one once it has finished."""
    inputs: Annotated[tuple[InputStatus, ...], Field(max_length=64)] = ()
    """The resources whose outputs it takes."""
    outputs: Annotated[tuple[OutputStatus, ...], Field(max_length=8)] = ()
    """Its outputs."""
    conditions: Annotated[tuple[Condition, ...], Field(max_length=8)] = ()
    """ResourceSubmitted, Healthy and Ready."""


class OwnerStatus(Status):
    """The state of an owner and of each resource of its blueprint."""

    resources: Annotated[tuple[ResourceStatus, ...], by_name(100)] = ()
    """The resources of the blueprint, in its order."""
    orphans: Annotated[tuple[OrphanReference, ...], Field(max_length=200)] = ()
    """Objects that the blueprint no longer asks for, until they are deleted."""
