"""PromotionStep: one Bundle into one environment, with everything that an agent needs to promote it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import DnsLabel, Model, Name, RelativePath, Resource, ShortText, Status, Text, Time, split_list
from kardinal.api.evidence import Evidence
from kardinal.api.health import Health, HealthStatus
from kardinal.api.pipeline import Approval, Delivery, Git, StepSpec, Update
from kardinal.objects import PROMOTION_STEP, ResourceType

__all__ = [
    "ENDED_STATES",
    "PROMOTION_STEP",
    "PromotionState",
    "PromotionStep",
    "PromotionStepSpec",
    "PromotionStepStatus",
    "PullRequestStatus",
    "Retry",
    "StepProgress",
]

PromotionState = Literal["Pending", "Promoting", "WaitingForMerge", "HealthChecking", "Verified", "Failed"]

ENDED_STATES: frozenset[str | None] = frozenset(["Verified", "Failed"])
"""States in which nothing more is done for a promotion."""


class PromotionStepSpec(Model):
    """Everything an agent needs, defaults resolved: it reads the Bundle and the gates besides, never the Pipeline."""

    pipeline: Name
    environment: DnsLabel
    bundle_ref: Name
    path: RelativePath
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """The environment's own branch, with layout `branch` alone."""
    git: Git
    update: Update = Field(default_factory=Update)
    approval: Approval = "auto"
    pr: bool = False
    steps: Annotated[tuple[StepSpec, ...], Field(max_length=32)] = ()
    health: Health = Field(default_factory=Health)
    delivery: Delivery = Field(default_factory=Delivery)
    shard: DnsLabel | None = None
    upstream_verified: Annotated[str | None, Field(max_length=2048)] = None
    required_gates: Annotated[tuple[Name, ...], Field(max_length=64)] = ()

    @property
    def target_branch(self) -> str:
        """Return the branch that the environment is deployed from."""
        return self.branch or self.git.branch

    @property
    def upstream_states(self) -> tuple[str, ...]:
        """Return the states of the upstream steps; empty for a first environment."""
        return split_list(self.upstream_verified)


class StepProgress(Model):
    """One entry of the sequence, as far as it got."""

    uses: Annotated[str, Field(max_length=63)]
    state: Literal["Running", "Succeeded", "Failed", "Skipped"]
    """Failed in a promotion that goes on is a step with `continueOnError`, Skipped one whose `if` is false."""
    message: Text | None = None
    deadline: Time | None = None
    """When it must be done; set when the step is entered, and never again."""
    location: Annotated[str | None, Field(max_length=2048)] = None
    """The address at which the endpoint of a custom step tells how its work stands."""
    finished_at: Time | None = None


class PullRequestStatus(Model):
    number: int
    url: Annotated[str, Field(max_length=2048)]
    branch: Annotated[str, Field(max_length=244)]


class Retry(Model):
    """The last failure that is being retried: it always stands where a person looks."""

    attempts: int
    limited: int | None = None
    """How many of these failures are of a kind that is worth a few attempts only."""
    last_error: Text
    next_at: Time


class PromotionStepStatus(Status):
    """Conditions: Ready (True when Verified), Held (a freeze or a gate holds what is in flight)."""

    state: PromotionState | None = None
    message: Text | None = None
    current_step: int | None = None
    steps: Annotated[tuple[StepProgress, ...], Field(max_length=32)] = ()
    outputs: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    tree: Annotated[str | None, Field(max_length=64)] = None
    commit: Annotated[str | None, Field(max_length=64)] = None
    diff: Annotated[str | None, Field(max_length=65536)] = None
    """The change as it was planned, as a unified diff, cut at 64 KiB."""
    pull_request: PullRequestStatus | None = None
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    retry: Retry | None = None
    started_at: Time | None = None
    prepared_at: Time | None = None
    """Since when the change is ready and waits until its Bundle is admitted to the environment."""
    promoted_at: Time | None = None
    merged_at: Time | None = None
    health_deadline: Time | None = None
    health: HealthStatus | None = None
    verified_at: Time | None = None
    evidence: Evidence | None = None
    delegated_to: ShortText | None = None
    delegated_status: ShortText | None = None

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more is done for the promotion."""
        return self.state in ENDED_STATES


class PromotionStep(Resource):
    resource: ClassVar[ResourceType] = PROMOTION_STEP

    spec: PromotionStepSpec
    status: PromotionStepStatus = Field(default_factory=PromotionStepStatus)
