"""ClusterRunTemplate and Runnable: an object that is made anew for each change of its inputs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kardinal.models.base import Model, Resource, Status
from kardinal.objects import JsonObject, ResourceType
from kardinal_supplychain.api.fields import JsonFields, Labels, ObjectName, ParamValue, PathText, ResourceName
from kardinal_supplychain.api.kinds import CLUSTER_RUN_TEMPLATE, RUNNABLE
from kardinal_supplychain.api.status import LastRun, OrphanReference, StampedReference
from kardinal_supplychain.api.templates import RetentionPolicy

__all__ = ["ClusterRunTemplate", "RunnableObject"]


class RunTemplateSpec(Model):
    template: JsonFields
    """The object, with tags such as `$(runnable.spec.inputs.source)$` in its strings."""
    outputs: Annotated[dict[ResourceName, PathText], Field(max_length=32)] = Field(default_factory=dict)
    """Paths in a successful object, by the name of the output."""


class RunTemplateReference(Model):
    """The ClusterRunTemplate of a Runnable."""

    kind: Annotated[str | None, Field(max_length=63)] = None
    """`ClusterRunTemplate`."""
    name: ObjectName
    """Name of the ClusterRunTemplate."""


class SelectedResource(Model):
    """The kind of the object that a Runnable reads."""

    api_version: Annotated[str, Field(max_length=317)]
    """Group and version of the object."""
    kind: Annotated[str, Field(max_length=63)]
    """Kind of the object."""


class RunnableSelector(Model):
    """The one object that a run template reads as `selected`."""

    resource: SelectedResource
    """Its kind."""
    matching_labels: Labels = Field(default_factory=dict)
    """Its labels."""


class RunnableSpec(Model):
    run_template_ref: RunTemplateReference
    """The ClusterRunTemplate that runs are stamped from."""
    selector: RunnableSelector | None = None
    """An object that the template reads as `selected`."""
    inputs: Annotated[dict[ResourceName, ParamValue], Field(max_length=256)] = Field(default_factory=dict)
    """Values that the template reads as `runnable.spec.inputs`: any JSON."""
    service_account_name: Annotated[str | None, Field(max_length=253)] = None
    """ServiceAccount with whose rights runs are stamped. Defaults to `default`."""
    retention_policy: RetentionPolicy | None = None
    """The number of earlier runs that are kept. Defaults to 10 of each."""


class RunnableStatus(Status):
    outputs: Annotated[JsonObject, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})] = Field(
        default_factory=dict
    )
    """Outputs of the newest successful run."""
    last_run: LastRun | None = None
    """The run that was made last."""
    stamped_ref: StampedReference | None = None
    """The object of the last run, also when it is gone."""
    orphans: Annotated[tuple[OrphanReference, ...], Field(max_length=200)] = ()
    """Runs of another kind, which the template does not stamp any more, until they are deleted."""


class ClusterRunTemplate(Resource):
    """ClusterRunTemplate: stamps the runs of Runnables."""

    resource: ClassVar[ResourceType] = CLUSTER_RUN_TEMPLATE

    spec: RunTemplateSpec
    """The object, and where its outputs are."""


class RunnableObject(Resource):
    """Runnable: inputs for a ClusterRunTemplate, which stamps a new object for each change of them."""

    resource: ClassVar[ResourceType] = RUNNABLE

    spec: RunnableSpec
    """The ClusterRunTemplate and its inputs."""
    status: RunnableStatus = Field(default_factory=RunnableStatus)
    """Outputs, and the conditions RunTemplateReady, StampedObjectCondition, Ready."""
