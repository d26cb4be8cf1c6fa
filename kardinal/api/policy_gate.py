"""PolicyGate: a condition written in CEL that stands between two environments.

A gate is a template until it carries the label `kardinal.io/bundle`; then it is the instance of one Bundle and
environment, made by the Graph. An instance shows what the Graph was translated from; its answer is that of the template
as it is now.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from kardinal.api.base import DnsLabel, Duration, Model, Name, Resource, Status, Text, Time, split_list
from kardinal.api.globs import BranchGlob, Globs, NameGlob, PathGlob, RepositoryGlob
from kardinal.api.pipeline import Approval
from kardinal.objects import POLICY_GATE, ResourceType

__all__ = ["POLICY_GATE", "GateMatch", "GateOrigin", "GateScope", "PolicyGate", "PolicyGateSpec", "PolicyGateStatus"]

GateScope = Literal["org", "team"]


class GateOrigin(Model):
    """The template and the promotion of an instance, in full: labels are cut at 63 characters."""

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
    """`auto` or `pr-review`, of the environment."""


class GateMatch(Model):
    """Globs for the facts of a promotion: one pattern of each list that is given must match."""

    # An empty object or list is refused: it could mean everything as well as nothing.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    namespaces: Globs[NameGlob] | None = None
    """Namespaces of the Pipeline."""
    pipelines: Globs[NameGlob] | None = None
    """Names of the Pipeline."""
    repositories: Globs[RepositoryGlob] | None = None
    """Repositories that are written to, as `host/path`."""
    branches: Globs[BranchGlob] | None = None
    """Branches that are written to."""
    paths: Globs[PathGlob] | None = None
    """Directories that are written to."""


class PolicyGateSpec(Model):
    expression: Annotated[str, Field(min_length=1, max_length=4096)]
    """Condition in CEL; the gate is open while it is true."""
    message: Text = ""
    """Text for those that the gate holds."""
    recheck_interval: Duration = timedelta(minutes=5)
    """How often it is asked again at the latest."""
    applies_to: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    """Names of the environments it stands before; by default all."""
    match: GateMatch | None = None
    """The promotions it holds, by what they write to."""
    upstream_environment: Annotated[str | None, Field(max_length=2048)] = None
    """Of an instance: the environments whose soak counts, with commas between."""
    origin: GateOrigin | None = None
    """Of an instance: its template and its promotion."""
    except_bundle: Name | None = None
    """Of a gate of type `hold`: the Bundle that it lets through."""

    @property
    def upstream_environments(self) -> tuple[str, ...]:
        """Return the environments whose soak an instance measures; empty before a first environment."""
        return split_list(self.upstream_environment)


class PolicyGateStatus(Status):
    """`reason` holds the values seen at `lastEvaluatedAt`; from `nextTransitionAt` on the answer does not count.

    `templateUID` and `templateGeneration` say which template gave the answer of an instance.
    """

    ready: bool | None = None
    """Whether the gate is open."""
    last_evaluated_at: Time | None = None
    """The moment of the last answer."""
    next_transition_at: Time | None = None
    """The moment until which the answer counts: time alone changes it then, or it has to be looked at again."""
    reason: Text | None = None
    """The values that were seen."""
    template_uid: Annotated[str | None, Field(alias="templateUID", max_length=63)] = None
    """UID of the template that was asked."""
    template_generation: int | None = None
    """Generation of the template that was asked."""


class PolicyGate(Resource):
    resource: ClassVar[ResourceType] = POLICY_GATE

    spec: PolicyGateSpec
    """The condition, and what it stands before."""
    status: PolicyGateStatus = Field(default_factory=PolicyGateStatus)
    """The answer."""
