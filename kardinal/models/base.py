"""The base of all custom resources: the model, metadata, conditions and the bounded field types.

The field types have bounds because an API server estimates the cost of every CEL rule from the largest value that the
schema admits: with an unbounded string or list it refuses the whole CRD.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from kardinal.objects import ResourceType
from kardinal.objects.conditions import format_time
from kardinal.objects.duration import DURATION_PATTERN, DURATION_RULE, LONGEST, format_duration, read_duration

__all__ = [
    "Condition",
    "Digest",
    "DnsLabel",
    "Duration",
    "LongText",
    "Model",
    "Name",
    "ObjectMeta",
    "OwnerReference",
    "RelativePath",
    "Resource",
    "SecretReference",
    "ShortText",
    "Span",
    "Status",
    "Text",
    "Time",
    "Url",
]

DNS_LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DIGEST_PATTERN = r"^[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-zA-Z=._-]{6,128}$"

PATH_RULE = {
    "rule": "!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)|,')",
    "message": "must be a relative path inside the repository, without .. segments and commas",
}


def _utc(moment: datetime) -> datetime:
    """Return a time in UTC. If UTC would be outside the years 1 to 9999, keep the date and drop the time zone.

    It does not raise, because the error would return in every reconcile that reads the object, and the validation of an
    API server does not prevent such a value.
    """
    try:
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


def _span(value: object) -> object:
    return read_duration(value) if isinstance(value, str) else value


def _duration(value: object) -> object:
    return min(read_duration(value), LONGEST) if isinstance(value, str) else value


Time = Annotated[
    datetime,
    AfterValidator(_utc),
    PlainSerializer(format_time, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 64}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 32,
            "pattern": DURATION_PATTERN,
            "x-kubernetes-validations": [dict(DURATION_RULE)],
        }
    ),
]
"""A duration that a person chooses, such as `5m`. A stored duration of more than a year counts as a year."""
Span = Annotated[
    timedelta,
    BeforeValidator(_span),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "maxLength": 32, "pattern": DURATION_PATTERN}),
]
"""A duration that was measured, of any length."""
DnsLabel = Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN_PATTERN)]
ShortText = Annotated[str, Field(max_length=256)]
Text = Annotated[str, Field(max_length=1024)]
LongText = Annotated[str, Field(max_length=4096)]
Url = Annotated[str, Field(min_length=1, max_length=2048)]
Digest = Annotated[str, Field(max_length=160, pattern=DIGEST_PATTERN)]
RelativePath = Annotated[
    str, Field(min_length=1, max_length=512, json_schema_extra={"x-kubernetes-validations": [dict(PATH_RULE)]})
]


class Model(BaseModel):
    """A value of a resource: frozen, with camelCase keys in JSON and snake_case in Python.

    Unknown fields are ignored.
    """

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object for an API server; absent fields are left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class OwnerReference(Model):
    api_version: str
    """Group and version of the owner."""
    kind: str
    """Kind of the owner."""
    name: str
    """Name of the owner."""
    uid: str
    """UID of the owner."""
    controller: bool | None = None
    """Whether the owner is the controller of this object."""
    block_owner_deletion: bool | None = None
    """Whether foreground deletion of the owner waits for the deletion of this object."""


class ObjectMeta(Model):
    """The part of `metadata` that kardinal reads."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()


class SecretReference(Model):
    """A Secret in the namespace of the object that names it, or in the agent's own cluster."""

    name: Name
    """Name of the Secret."""


class Condition(Model):
    """A `metav1.Condition` of Kubernetes."""

    type: Annotated[str, Field(max_length=316)]
    """The name of the condition."""
    status: Literal["True", "False", "Unknown"]
    """The status of the condition: `True`, `False`, or `Unknown` where it cannot be told."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """The cause in one word in CamelCase, for programs."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """The cause in a sentence, for people."""
    last_transition_time: Time
    """The time at which `status` changed last."""
    observed_generation: int | None = None
    """The generation of the object from which the condition was computed."""


class Status(Model):
    """The fields of every status, so that `kubectl wait --for=condition=…` works."""

    observed_generation: int | None = None
    """The generation of the object from which this status was computed; absent until a controller has seen it."""
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ] = ()
    """The conditions, one of each type, for `kubectl wait --for=condition=…`."""

    def condition(self, type_: str) -> Condition | None:
        return next((condition for condition in self.conditions if condition.type == type_), None)


class Resource(Model):
    """One custom resource. Each kind adds its `spec` and `status`, and its group, version and plural in `resource`."""

    resource: ClassVar[ResourceType]

    metadata: ObjectMeta = Field(default_factory=ObjectMeta)
