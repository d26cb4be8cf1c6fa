"""PromotionStep: one Bundle into one environment, with everything that an agent needs to promote it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.api.base import (
    DnsLabel,
    Model,
    Name,
    RelativePath,
    Resource,
    ShortText,
    Span,
    Status,
    Text,
    Time,
    split_list,
)
from kardinal.api.evidence import Evidence
from kardinal.api.health import Health, HealthStatus
from kardinal.api.pipeline import Approval, Delivery, Git, StepSpec, Update
from kardinal.objects import PROMOTION_STEP, ResourceType

__all__ = [
    "ENDED_STATES",
    "NO_AGENT",
    "PROMOTION_STEP",
    "PROOF_MISSING",
    "PromotionState",
    "PromotionStep",
    "PromotionStepSpec",
    "PromotionStepStatus",
    "Proposal",
    "PullRequestStatus",
    "Retry",
    "StepProgress",
]

PromotionState = Literal["Pending", "Promoting", "WaitingForMerge", "HealthChecking", "Verified", "Failed"]

ENDED_STATES: frozenset[str | None] = frozenset(["Verified", "Failed"])
"""States in which nothing more is done for a promotion."""

NO_AGENT = "NoAgent"
"""The condition of a step that no agent has taken, and of its Bundle."""
PROOF_MISSING = "ProofMissing"
"""The condition of a step whose proof is an object that does not exist; False while it may only be late."""


class PromotionStepSpec(Model):
    """Everything an agent needs, defaults resolved: it reads the Bundle and the gates besides, never the Pipeline."""

    pipeline: Name
    """Name of the Pipeline."""
    environment: DnsLabel
    """Name of the environment."""
    bundle_ref: Name
    """Name of the Bundle."""
    path: RelativePath
    """Directory of the environment in the repository."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """The environment's own branch, with layout `branch` alone."""
    git: Git
    """The repository, as in the Pipeline."""
    update: Update = Field(default_factory=Update)
    """How the manifests take the version, as in the Pipeline."""
    approval: Approval = "auto"
    """`auto` or `pr-review`, as in the Pipeline."""
    pr: bool = False
    """Whether `auto` opens a pull request as well."""
    steps: Annotated[tuple[StepSpec, ...], Field(max_length=32)] = ()
    """The sequence of steps."""
    health: Health = Field(default_factory=Health)
    """The proof that is wanted, as in the Pipeline."""
    delivery: Delivery = Field(default_factory=Delivery)
    """The delivery controller that is waited for."""
    shard: DnsLabel | None = None
    """Name of the agents that promote it."""
    attempt: Annotated[int | None, Field(ge=2)] = None
    """The number of the attempt; the first has none."""
    upstream_verified: Annotated[str | None, Field(max_length=2048)] = None
    """The states of the steps before it, with commas between."""
    required_gates: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """Names of the gates before it."""

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
    """Name of the step."""
    state: Literal["Running", "Succeeded", "Failed", "Skipped"]
    """`Running`, `Succeeded`, `Failed` (with `continueOnError` the promotion goes on), or `Skipped` by its `if`."""
    message: Text | None = None
    """The result of the step, or why it failed."""
    deadline: Time | None = None
    """When it must be done; set when the step is entered, and never again."""
    location: Annotated[str | None, Field(max_length=2048)] = None
    """The address at which the endpoint of a custom step tells how its work stands."""
    finished_at: Time | None = None
    """The moment at which it ended."""


class PullRequestStatus(Model):
    number: int
    """Number of the pull request."""
    url: Annotated[str, Field(max_length=2048)]
    """URL of the pull request."""
    branch: Annotated[str, Field(max_length=244)]
    """Branch of the proposal."""


class Proposal(Model):
    """A proposal that may exist, noted before it is made: it can be withdrawn when the Bundle is gone."""

    branch: Annotated[str, Field(max_length=244)]
    """Name of its branch."""
    bundle_uid: Annotated[str, Field(alias="bundleUID", max_length=64)]
    """UID of the Bundle, which its commit carries."""


class Retry(Model):
    """The last failure that is being retried: it always stands where a person looks."""

    attempts: int
    """Failures in a row so far."""
    limited: int | None = None
    """How many of these failures are of a kind that is worth a few attempts only."""
    last_error: Text
    """The last failure."""
    next_at: Time
    """The moment of the next attempt."""


class PromotionStepStatus(Status):
    """Conditions: Ready (True when Verified), Held (a freeze or a gate holds it), Degraded (what runs is unhealthy).

    Degraded is Unknown while what is Verified cannot be seen. NoAgent: no agent serves its shard. ProofMissing:
    the object that `health` names does not exist.
    """

    state: PromotionState | None = None
    """`Pending`: not begun. `Promoting`: writing. `WaitingForMerge`: a pull request is open. `HealthChecking`: landed,
    not proven. `Verified`: proven. `Failed`: ended without proof.
    """
    attempt: Annotated[int | None, Field(ge=2)] = None
    """The attempt that this is the status of; the first has none."""
    message: Text | None = None
    """The last thing that was done, or what is waited for."""
    current_step: int | None = None
    """Place of the running step in the sequence, from 0."""
    steps: Annotated[tuple[StepProgress, ...], Field(max_length=32)] = ()
    """The sequence, as far as it got."""
    outputs: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    """The outputs of the steps, by their names."""
    tree: Annotated[str | None, Field(max_length=64)] = None
    """Id of the tree that was edited."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    diff: Annotated[str | None, Field(max_length=65536)] = None
    """The change as it was planned, as a unified diff, cut at 64 KiB."""
    proposal: Proposal | None = None
    """The branch that is proposed, from before it is made."""
    pull_request: PullRequestStatus | None = None
    """The pull request."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    retry: Retry | None = None
    """The failure that is being retried."""
    started_at: Time | None = None
    """The moment of the first step."""
    prepared_at: Time | None = None
    """Since when the change is ready and waits until its Bundle is admitted to the environment."""
    promoted_at: Time | None = None
    """The moment at which the change landed."""
    merged_at: Time | None = None
    """The moment of the merge."""
    health_deadline: Time | None = None
    """The moment at which the proof must be there."""
    health: HealthStatus | None = None
    """How the proof stands."""
    verified_at: Time | None = None
    """The moment of the proof."""
    healthy: bool | None = None
    """Whether what was Verified still is healthy: false while it is Degraded, or cannot be seen. What follows waits."""
    healthy_since: Time | None = None
    """Since when it is healthy without a break."""
    healthy_for: Span | None = None
    """The healthy time before that, since it was last Degraded: while it cannot be seen, none is counted."""
    evidence: Evidence | None = None
    """The evidence of the promotion, once it is Verified or Failed."""
    delegated_to: ShortText | None = None
    """The delivery controller that is waited for."""
    delegated_status: ShortText | None = None
    """The state that the controller reports."""

    @property
    def has_ended(self) -> bool:
        """Return whether nothing more is done for the promotion."""
        return self.state in ENDED_STATES


class PromotionStep(Resource):
    resource: ClassVar[ResourceType] = PROMOTION_STEP

    spec: PromotionStepSpec
    """The promotion to execute."""
    status: PromotionStepStatus = Field(default_factory=PromotionStepStatus)
    """How far it got."""
