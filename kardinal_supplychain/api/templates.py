"""The five kinds of templates: an object with tags, or ytt, and where the outputs of the stamped object are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from kardinal.models.base import Model, Resource
from kardinal.objects import ResourceType
from kardinal_supplychain.api.fields import (
    TEMPLATE_LIMIT,
    JsonFields,
    PathText,
    RequirementOperator,
    TemplateParam,
    by_name,
    rules,
)
from kardinal_supplychain.api.kinds import (
    CLUSTER_CONFIG_TEMPLATE,
    CLUSTER_DEPLOYMENT_TEMPLATE,
    CLUSTER_IMAGE_TEMPLATE,
    CLUSTER_SOURCE_TEMPLATE,
    CLUSTER_TEMPLATE,
)

__all__ = [
    "TEMPLATE_MODELS",
    "ClusterConfigTemplate",
    "ClusterDeploymentTemplate",
    "ClusterImageTemplate",
    "ClusterSourceTemplate",
    "ClusterTemplate",
    "ConditionMatch",
    "ConfigTemplateSpec",
    "DeploymentTemplateSpec",
    "FieldMatch",
    "HealthMatches",
    "HealthRule",
    "ImageTemplateSpec",
    "Lifecycle",
    "MultiMatch",
    "ObservedCompletion",
    "ObservedMatch",
    "RetentionPolicy",
    "SourceTemplateSpec",
    "TemplateSpec",
]

Lifecycle = Literal["mutable", "immutable", "tekton"]

_TextValue = Annotated[str, Field(max_length=1024)]


class RetentionPolicy(Model):
    """How many runs are kept."""

    max_failed_runs: Annotated[int, Field(ge=1)] = 10
    """The number of failed runs that are kept. Defaults to 10."""
    max_successful_runs: Annotated[int, Field(ge=1)] = 10
    """The number of successful runs that are kept. Defaults to 10."""


class ConditionMatch(Model):
    """A condition of the stamped object, with its status."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """Type of the condition."""
    status: Annotated[str, Field(max_length=16)]
    """Status of the condition."""


class FieldMatch(Model):
    """A requirement on a field of the stamped object."""

    key: Annotated[str, Field(min_length=1, max_length=1024)]
    """Path of the field, such as `status.phase`."""
    operator: RequirementOperator
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: Annotated[tuple[_TextValue, ...], Field(max_length=64)] = ()
    """Values for `In` and `NotIn`."""
    message_path: PathText | None = None
    """Path of a text that is quoted as the message."""


class HealthMatches(Model):
    """Requirements on the stamped object, all of which must hold."""

    match_conditions: Annotated[tuple[ConditionMatch, ...], Field(max_length=64)] = ()
    """Requirements on conditions."""
    match_fields: Annotated[tuple[FieldMatch, ...], Field(max_length=64)] = ()
    """Requirements on fields."""


class MultiMatch(Model):
    """When the stamped object is healthy, and when it is not."""

    healthy: HealthMatches
    """All of them hold: the object is healthy."""
    unhealthy: HealthMatches
    """One of them holds: the object is unhealthy."""


class HealthRule(Model):
    """How the health of the stamped object is read."""

    model_config = rules(
        (
            "(has(self.alwaysHealthy) ? 1 : 0) + (has(self.singleConditionType) ? 1 : 0)"
            " + (has(self.multiMatch) ? 1 : 0) == 1",
            "write one of alwaysHealthy, singleConditionType and multiMatch",
        )
    )

    always_healthy: JsonFields | None = None
    """The object is healthy once it is submitted: `{}`."""
    single_condition_type: Annotated[str | None, Field(min_length=1, max_length=316)] = None
    """The type of the condition whose status is the health."""
    multi_match: MultiMatch | None = None
    """Requirements on conditions and fields."""


class TemplateSpec(Model):
    """The fields that all kinds of templates share."""

    model_config = rules(("has(self.template) != has(self.ytt)", "write either template or ytt"))

    template: JsonFields | None = None
    """The object, with tags such as `$(params.port)$` in its strings. Not beside `ytt`."""
    ytt: Annotated[str | None, Field(min_length=1, max_length=TEMPLATE_LIMIT)] = None
    """The object as a template of ytt. Not beside `template`."""
    params: Annotated[tuple[TemplateParam, ...], by_name(256)] = ()
    """Parameters that the template reads, with their defaults."""
    health_rule: HealthRule | None = None
    """How the health of the object is read. Defaults to healthy with all outputs, and always for a ClusterTemplate."""
    lifecycle: Lifecycle = "mutable"
    """`mutable`: one object, updated. `immutable`: a new object for each change. `tekton`: the same, and its condition
    Succeeded is its health. Defaults to mutable.
    """
    retention_policy: RetentionPolicy | None = None
    """The number of earlier objects that are kept, unless the lifecycle is mutable."""


class SourceTemplateSpec(TemplateSpec):
    url_path: PathText
    """Path of the output `url` in the stamped object, such as `status.artifact.url`."""
    revision_path: PathText
    """Path of the output `revision` in the stamped object, such as `status.artifact.revision`."""


class ImageTemplateSpec(TemplateSpec):
    image_path: PathText
    """Path of the output `image` in the stamped object, such as `status.latestImage`."""


class ConfigTemplateSpec(TemplateSpec):
    config_path: PathText
    """Path of the output `config` in the stamped object, such as `data`."""


class ObservedMatch(Model):
    """Two fields of the stamped object that are equal once it is deployed."""

    input: PathText
    """Path of the value that was asked for."""
    output: PathText
    """Path of the value that was reached."""


class CompletionMatch(Model):
    """A field with a value."""

    key: PathText
    """Path of the field."""
    value: _TextValue
    """Its value, as text."""


class ObservedCompletion(Model):
    """How an object says that it deployed its last change, or failed to."""

    succeeded: CompletionMatch
    """The field that says that it was deployed."""
    failed: CompletionMatch | None = None
    """The field that says that it failed."""


class DeploymentTemplateSpec(TemplateSpec):
    url_path: PathText | None = None
    """Path of the output `url` in the stamped object. Defaults to the url of the input `deployment`."""
    revision_path: PathText | None = None
    """Path of the output `revision` in the stamped object. Defaults to the revision of the input `deployment`."""
    observed_matches: Annotated[tuple[ObservedMatch, ...], Field(max_length=32)] | None = None
    """Pairs of fields that are equal once it is deployed."""
    observed_completion: ObservedCompletion | None = None
    """The fields that say that it was deployed, or failed."""


class ClusterSourceTemplate(Resource):
    """ClusterSourceTemplate: stamps an object that finds a source, with the outputs url and revision."""

    resource: ClassVar[ResourceType] = CLUSTER_SOURCE_TEMPLATE

    spec: SourceTemplateSpec
    """The object, and where its outputs are."""


class ClusterImageTemplate(Resource):
    """ClusterImageTemplate: stamps an object that makes an image, with the output image."""

    resource: ClassVar[ResourceType] = CLUSTER_IMAGE_TEMPLATE

    spec: ImageTemplateSpec
    """The object, and where its output is."""


class ClusterConfigTemplate(Resource):
    """ClusterConfigTemplate: stamps an object that makes configuration, with the output config."""

    resource: ClassVar[ResourceType] = CLUSTER_CONFIG_TEMPLATE

    spec: ConfigTemplateSpec
    """The object, and where its output is."""


class ClusterDeploymentTemplate(Resource):
    """ClusterDeploymentTemplate: stamps an object that deploys, and passes its input on once it did."""

    resource: ClassVar[ResourceType] = CLUSTER_DEPLOYMENT_TEMPLATE

    spec: DeploymentTemplateSpec
    """The object, and how it says that it was deployed."""


class ClusterTemplate(Resource):
    """ClusterTemplate: stamps an object without outputs."""

    resource: ClassVar[ResourceType] = CLUSTER_TEMPLATE

    spec: TemplateSpec
    """The object."""


AnyTemplate = (
    ClusterSourceTemplate | ClusterImageTemplate | ClusterConfigTemplate | ClusterDeploymentTemplate | ClusterTemplate
)

TEMPLATE_MODELS: Final[Mapping[str, type[AnyTemplate]]] = {
    model.resource.kind: model
    for model in (
        ClusterSourceTemplate,
        ClusterImageTemplate,
        ClusterConfigTemplate,
        ClusterDeploymentTemplate,
        ClusterTemplate,
    )
}
"""The models of templates by their kinds."""
