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
    name: Name
    scope: GateScope
    pipeline: Name
    bundle: Name
    environment: DnsLabel
    approval: Approval = "auto"


class GateMatch(Model):
    """Globs for the facts of a promotion: one pattern of each list that is given must match."""

    # An empty object or list is refused: it could mean everything as well as nothing.
    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    namespaces: Globs[NameGlob] | None = None
    pipelines: Globs[NameGlob] | None = None
    repositories: Globs[RepositoryGlob] | None = None
    branches: Globs[BranchGlob] | None = None
    paths: Globs[PathGlob] | None = None


class PolicyGateSpec(Model):
    expression: Annotated[str, Field(min_length=1, max_length=4096)]
    message: Text = ""
    recheck_interval: Duration = timedelta(minutes=5)
    applies_to: Annotated[
        tuple[DnsLabel, ...], Field(max_length=64, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = ()
    match: GateMatch | None = None
    upstream_environment: Annotated[str | None, Field(max_length=2048)] = None
    origin: GateOrigin | None = None

    @property
    def upstream_environments(self) -> tuple[str, ...]:
        """Return the environments whose soak an instance measures; empty before a first environment."""
        return split_list(self.upstream_environment)


class PolicyGateStatus(Status):
    """`reason` holds the values seen at `lastEvaluatedAt`; at `nextTransitionAt` time alone can change the answer.

    `templateUID` and `templateGeneration` say which template gave the answer of an instance.
    """

    ready: bool | None = None
    last_evaluated_at: Time | None = None
    next_transition_at: Time | None = None
    reason: Text | None = None
    template_uid: Annotated[str | None, Field(alias="templateUID", max_length=63)] = None
    template_generation: int | None = None


class PolicyGate(Resource):
    resource: ClassVar[ResourceType] = POLICY_GATE

    spec: PolicyGateSpec
    status: PolicyGateStatus = Field(default_factory=PolicyGateStatus)
