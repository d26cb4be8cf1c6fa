"""PolicyGate: a condition written in CEL that stands between two environments.

A gate is a template until it carries the label `kardinal.io/bundle`; with the label it is the instance of one Bundle
and environment, created by the Graph. The spec of an instance is the one that the Graph was translated from, but its
answer is that of the current template.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from kardinal.models.base import (
    DnsLabel,
    Duration,
    Model,
    Name,
    Resource,
    ShortText,
    Status,
    Text,
    Time,
)
from kardinal.objects import ResourceType
from kardinal.promotion.api.evidence import Inputs
from kardinal.promotion.api.globs import BranchGlob, Globs, NameGlob, PathGlob, RepositoryGlob
from kardinal.promotion.api.lists import split_list
from kardinal.promotion.api.pipeline import Approval
from kardinal.promotion.kinds import POLICY_GATE

__all__ = [
    "KEPT_ANSWERS",
    "SEEN_VALUES",
    "GateMatch",
    "GateOrigin",
    "GateScope",
    "PastAnswer",
    "PolicyGate",
    "PolicyGateSpec",
    "PolicyGateStatus",
    "SeenValue",
]

GateScope = Literal["org", "team"]

KEPT_ANSWERS = 20
"""The most answers in the history of a gate instance, because etcd limits the size of an object."""
SEEN_VALUES = 32
"""The most values that an answer keeps, for the same reason."""


class GateOrigin(Model):
    """The template and the promotion of an instance, with full names, because labels are cut at 63 characters."""

    namespace: DnsLabel
    """Namespace of the template."""
    name: Name
    """Name of the template."""
    scope: GateScope
    """`org` from a policy namespace, `team` from the Pipeline's."""
    pipeline: Name
    """Name of the Pipeline."""
    bundle: Name
    """Name of the Bundle."""
    environment: DnsLabel
    """Name of the environment."""
    approval: Approval = "auto"
    """The approval of the environment: `auto` or `pr-review`."""


class GateMatch(Model):
    """Globs for the facts of a promotion. In every list that is given, at least one pattern must match."""

    # An empty object or list is refused, because it could mean both everything and nothing.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    namespaces: Globs[NameGlob] | None = None
    """Namespaces of the Pipeline."""
    pipelines: Globs[NameGlob] | None = None
    """Names of the Pipeline."""
    repositories: Globs[RepositoryGlob] | None = None
    """Repositories that are written to, as `host/path`, for example `github.com/acme/*`."""
    branches: Globs[BranchGlob] | None = None
    """Branches that are written to."""
    paths: Globs[PathGlob] | None = None
    """Directories that are written to, for example `environments/prod`."""


class PolicyGateSpec(Model):
    expression: Annotated[str, Field(min_length=1, max_length=4096)]
    """Condition in CEL; the gate is open while it is true."""
    message: Text = ""
    """Text for the authors of Bundles that the gate holds."""
    recheck_interval: Duration = timedelta(minutes=5)
    """The longest time between two evaluations. Defaults to 5m."""
    time_zone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    """The time zone of `schedule`, such as `Europe/Zurich`. Defaults to `UTC`."""
    holidays: Name | None = None
    """Name of a ConfigMap in the gate's namespace, with the dates for `schedule.isHoliday` under the key `dates`."""
    applies_to: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    """Names of the environments it stands before. Defaults to all."""
    match: GateMatch | None = None
    """The promotions it holds, by the place they write to. Defaults to all."""
    upstream_environment: Annotated[str | None, Field(max_length=2048)] = None
    """Of an instance: the environments whose soak counts, separated by commas."""
    origin: GateOrigin | None = None
    """Of an instance: its template and its promotion."""
    except_bundle: Name | None = None
    """Of a gate of type `hold`: the Bundle that it lets through."""

    @property
    def upstream_environments(self) -> tuple[str, ...]:
        """Return the environments whose soak an instance measures; empty before a first environment."""
        return split_list(self.upstream_environment)


class SeenValue(Model):
    """A value that an answer rests on, such as `schedule.hour` with `20`."""

    name: ShortText
    """The attribute of the expression."""
    value: Annotated[str, Field(max_length=64)]
    """Its value as text."""


class PastAnswer(Model):
    """An answer of a gate instance, which counted until the next one."""

    ready: bool
    """Whether the gate was open."""
    since: Time
    """The time since which it was."""
    reason: ShortText | None = None
    """The values that the gate had read then."""


class PolicyGateStatus(Status):
    """`reason` contains the values read at `lastEvaluatedAt`; from `nextTransitionAt` on the answer does not count.

    `templateUID` and `templateGeneration` identify the template that gave the answer of an instance.
    """

    ready: bool | None = None
    """Whether the gate is open."""
    last_evaluated_at: Time | None = None
    """The time of the last evaluation."""
    next_transition_at: Time | None = None
    """The time until which the answer counts: time alone changes it then, or it must be renewed."""
    reason: Text | None = None
    """The values that the gate has read."""
    values: Annotated[tuple[SeenValue, ...] | None, Field(max_length=SEEN_VALUES)] = None
    """The same values one by one; absent if the expression could not be evaluated."""
    inputs: Inputs | None = None
    """The values that the answer has read, as data for `kardinal policy replay`; absent if they are too large."""
    history: Annotated[tuple[PastAnswer, ...] | None, Field(max_length=KEPT_ANSWERS)] = None
    """Of an instance: its last answers, oldest first. It grows when the gate opens or closes."""
    template_uid: Annotated[str | None, Field(alias="templateUID", max_length=63)] = None
    """UID of the template that gave the answer."""
    template_generation: int | None = None
    """Generation of the template that gave the answer."""

    def counts_at(self, now: datetime) -> bool:
        """Return whether the gate is open, and time has not ended that answer."""
        return self.ready is True and (self.next_transition_at is None or self.next_transition_at > now)


class PolicyGate(Resource):
    resource: ClassVar[ResourceType] = POLICY_GATE

    spec: PolicyGateSpec
    """The condition, and the promotions that it holds."""
    status: PolicyGateStatus = Field(default_factory=PolicyGateStatus)
    """The answer."""
