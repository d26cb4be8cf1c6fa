"""Parts that several kinds of carto.run share.

Bounds are wide, because files that were written for Cartographer must be accepted as they are; without any, an API
server would refuse the rules of the CRDs as too expensive.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from kardinal.models.base import Model

__all__ = [
    "TEMPLATE_LIMIT",
    "BlueprintParam",
    "FieldRequirement",
    "GitReference",
    "GitRepository",
    "JsonFields",
    "LabelRequirement",
    "Labels",
    "ObjectName",
    "OwnerParam",
    "OwnerSource",
    "ParamName",
    "ParamValue",
    "PathText",
    "RequirementOperator",
    "ResourceName",
    "ServiceAccountReference",
    "TemplateParam",
    "by_name",
    "rules",
]

TEMPLATE_LIMIT = 256 << 10
"""The most characters of `spec.ytt`, and the most bytes of `spec.template` as JSON."""

_PRESERVE = "x-kubernetes-preserve-unknown-fields"

RequirementOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
ResourceName = Annotated[str, Field(min_length=1, max_length=253)]
ParamName = Annotated[str, Field(min_length=1, max_length=253)]
PathText = Annotated[str, Field(max_length=1024)]
LabelKey = Annotated[str, Field(min_length=1, max_length=317)]
LabelValue = Annotated[str, Field(max_length=63)]
Labels = Annotated[dict[str, LabelValue], Field(max_length=64)]
ParamValue = Annotated[Any, Field(json_schema_extra={_PRESERVE: True})]
"""Any JSON value."""
JsonFields = Annotated[dict[str, Any], Field(json_schema_extra={_PRESERVE: True})]
"""Any JSON object."""


def rules(*pairs: tuple[str, str]) -> ConfigDict:
    """Return the configuration of a model with CEL rules, each with the message of its violation."""
    validations: list[JsonValue] = [{"rule": rule, "message": message} for rule, message in pairs]
    return ConfigDict(json_schema_extra={"x-kubernetes-validations": validations})


def by_name(most: int) -> Any:
    """Return the definition of a list of at most `most` entries, each with a name of its own."""
    return Field(
        max_length=most,
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    )


class OwnerParam(Model):
    """A parameter of a Workload or Deliverable."""

    name: ParamName
    """Name of the parameter."""
    value: ParamValue
    """Value of the parameter: any JSON."""


class BlueprintParam(Model):
    """A parameter of a blueprint, or of one of its resources."""

    # Exactly one of value and default beside the name; a rule in CEL does not see fields that may hold any JSON.
    model_config = ConfigDict(json_schema_extra={"minProperties": 2, "maxProperties": 2})

    name: ParamName
    """Name of the parameter."""
    value: ParamValue = None
    """Value that an owner cannot replace: any JSON. Not beside `default`."""
    default: ParamValue = None
    """Value unless the owner has one: any JSON. Not beside `value`."""


class TemplateParam(Model):
    """A parameter that a template reads, with its default."""

    name: ParamName
    """Name of the parameter."""
    default: ParamValue
    """Value unless a blueprint or an owner has one: any JSON."""


class LabelRequirement(Model):
    """A requirement on one label."""

    key: LabelKey
    """Key of the label."""
    operator: RequirementOperator
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: Annotated[tuple[LabelValue, ...], Field(max_length=64)] = ()
    """Values for `In` and `NotIn`."""


class FieldRequirement(Model):
    """A requirement on one field."""

    key: Annotated[str, Field(min_length=1, max_length=1024)]
    """Path of the field, such as `workload.spec.source.git` or `spec.source.git`."""
    operator: RequirementOperator
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""
    values: Annotated[tuple[Annotated[str, Field(max_length=1024)], ...], Field(max_length=64)] = ()
    """Values for `In` and `NotIn`."""


class ServiceAccountReference(Model):
    """The ServiceAccount with whose rights objects are stamped."""

    name: ObjectName
    """Name of the ServiceAccount."""
    namespace: Annotated[str | None, Field(max_length=63)] = None
    """Its namespace. Defaults to that of the owner."""


class GitReference(Model):
    """The branch, tag or commit of a source."""

    branch: Annotated[str | None, Field(max_length=253)] = None
    """Name of a branch."""
    tag: Annotated[str | None, Field(max_length=253)] = None
    """Name of a tag."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """SHA of a commit."""


class GitRepository(Model):
    """A Git repository with source code or configuration."""

    url: Annotated[str | None, Field(max_length=2048)] = None
    """URL of the repository."""
    ref: GitReference | None = None
    """The branch, tag or commit."""


class OwnerSource(Model):
    """The source that an owner names: a Git repository, or an image that contains it."""

    git: GitRepository | None = None
    """A Git repository."""
    image: Annotated[str | None, Field(max_length=1024)] = None
    """An OCI image with the source."""
    sub_path: Annotated[str | None, Field(max_length=1024)] = None
    """Directory inside the source. Defaults to its root."""
