"""PromotionStep: one Bundle into one environment, with everything that an agent needs to promote it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from kardinal.models.base import (
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
)
from kardinal.objects import ResourceType
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.health import Health, HealthStatus
from kardinal.promotion.api.lists import split_list
from kardinal.promotion.api.pipeline import Approval, Git, MetricVerification, ProgressiveDelivery, StepSpec, Update
from kardinal.promotion.kinds import PROMOTION_STEP

__all__ = [
    "BLOCKED",
    "ENDED_STATES",
    "NOT_ASSIGNED",
    "NO_AGENT",
    "PROOF_MISSING",
    "PromotionState",
    "PromotionStep",
    "PromotionStepSpec",
    "PromotionStepStatus",
    "Proposal",
    "PullRequestStatus",
    "Retry",
    "StepProgress",
    "TargetDrift",
]

PromotionState = Literal["Pending", "Promoting", "WaitingForMerge", "HealthChecking", "Verified", "Failed"]

ENDED_STATES: frozenset[str | None] = frozenset(["Verified", "Failed"])
"""States in which the promotion has ended."""

BLOCKED = "Blocked"
"""The reason of the condition Held of a step if something is missing that mostly a person has to put right."""
NO_AGENT = "NoAgent"
"""The condition of a step that no agent has taken, and of its Bundle."""
NOT_ASSIGNED = "NotAssigned"
"""The condition of a step whose host does not accept some of `git.pullRequest`, such as a reviewer."""
PROOF_MISSING = "ProofMissing"
"""The condition of a step whose health object does not exist; False while the object may only be late."""


class PromotionStepSpec(Model):
    """The data that an agent needs, with all defaults.

    Besides it, the agent reads the Bundle and the gates, but never the Pipeline.
    """

    pipeline: Name
    """Name of the Pipeline."""
    environment: DnsLabel
    """Name of the environment."""
    bundle_ref: Name
    """Name of the Bundle."""
    path: RelativePath
    """Directory of the environment in the repository."""
    branch: Annotated[str | None, Field(min_length=1, max_length=244)] = None
    """The environment's own branch; only with layout `branch`."""
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
    """How the environment proves that it runs the promoted versions, as in the Pipeline."""
    delivery: ProgressiveDelivery = Field(default_factory=ProgressiveDelivery)
    """The delivery controller that is waited for."""
    verify: MetricVerification | None = None
    """The metrics that must pass before the environment is Verified, as in the Pipeline."""
    shard: DnsLabel | None = None
    """Name of the agents that promote it."""
    attempt: Annotated[int | None, Field(ge=2)] = None
    """The number of the attempt; absent for the first."""
    upstream_verified: Annotated[str | None, Field(max_length=2048)] = None
    """The states of the upstream steps, separated by commas."""
    required_gates: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """Names of the gates before the step."""

    @property
    def target_branch(self) -> str:
        """Return the branch that the environment is deployed from."""
        return self.branch or self.git.branch

    @property
    def upstream_states(self) -> tuple[str, ...]:
        """Return the states of the upstream steps; empty for a first environment."""
        return split_list(self.upstream_verified)


class StepProgress(Model):
    """The progress of one entry of the sequence."""

    uses: Annotated[str, Field(max_length=63)]
    """Name of the step."""
    state: Literal["Running", "Succeeded", "Failed", "Skipped"]
    """`Running`, `Succeeded`, `Failed` (with `continueOnError` the promotion goes on), or `Skipped` by its `if`."""
    message: Text | None = None
    """The result of the step, or the reason for its failure."""
    started_at: Time | None = None
    """The time at which it started; absent if it was skipped."""
    deadline: Time | None = None
    """The time at which the step must be done; set once, when the step starts."""
    location: Annotated[str | None, Field(max_length=2048)] = None
    """The URL at which the endpoint of a custom step reports the progress of its work."""
    finished_at: Time | None = None
    """The time at which it ended."""


class PullRequestStatus(Model):
    number: int
    """Number of the pull request."""
    url: Annotated[str, Field(max_length=2048)]
    """URL of the pull request."""
    branch: Annotated[str, Field(max_length=244)]
    """Branch of the proposal."""


class Proposal(Model):
    """A proposal that may exist. It is noted before it is made, so that it can be withdrawn when the Bundle is gone."""

    branch: Annotated[str, Field(max_length=244)]
    """Name of its branch."""
    bundle_uid: Annotated[str, Field(alias="bundleUID", max_length=64)]
    """UID of the Bundle, which is also in a trailer of its commit."""
    assigned: int | None = None
    """Number of the pull request that has received its reviewers, assignees and labels; they are set once."""


class Retry(Model):
    """The last failure that is being retried."""

    attempts: int
    """Number of failures in a row so far."""
    limited: int | None = None
    """Number of these failures that are of a kind with few retries."""
    last_error: Text
    """The message of the last failure."""
    next_at: Time
    """The time of the next attempt."""


class TargetDrift(Model):
    """The drift of an environment: its branch has changes at its path that its tool has not applied."""

    unreconciled: bool | None = None
    """True if the path has changes that the tool has not applied, or the tool reports OutOfSync; absent if unknown."""
    message: Text
    """The sentence that explains it."""
    seen_at: Time
    """The time at which an agent saw it last; it is written on a change, and every few minutes."""


class PromotionStepStatus(Status):
    """Conditions: Ready (True when Verified), Held (by a freeze or a gate), Degraded (the environment is unhealthy).

    Degraded is Unknown while a Verified environment cannot be observed. NoAgent: no agent serves its shard.
    NotAssigned: its pull request lacks some of `git.pullRequest`. ProofMissing: the object that `health` names does not
    exist.
    """

    state: PromotionState | None = None
    """`Pending`: not begun.

    `Promoting`: writing. `WaitingForMerge`: a pull request is open. `HealthChecking`: landed, not proven. `Verified`:
    proven. `Failed`: ended without proof.
    """
    attempt: Annotated[int | None, Field(ge=2)] = None
    """The number of the attempt that this status describes; absent for the first."""
    message: Text | None = None
    """The last action, or the event that the promotion waits for."""
    current_step: int | None = None
    """Index of the running step in the sequence, from 0."""
    steps: Annotated[tuple[StepProgress, ...], Field(max_length=32)] = ()
    """The progress of the sequence."""
    outputs: Annotated[
        dict[str, Any] | None, Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
    ] = None
    """The outputs of the steps, by their names."""
    tree: Annotated[str | None, Field(max_length=64)] = None
    """Id of the Git tree that was edited."""
    commit: Annotated[str | None, Field(max_length=64)] = None
    """The commit that landed."""
    diff: Annotated[str | None, Field(max_length=65536)] = None
    """The planned change as a unified diff, cut at 64 KiB."""
    proposal: Proposal | None = None
    """The branch of the proposal, noted before it is created."""
    pull_request: PullRequestStatus | None = None
    """The pull request."""
    pr_url: Annotated[str | None, Field(alias="prURL", max_length=2048)] = None
    """URL of the pull request."""
    retry: Retry | None = None
    """The failure that is being retried."""
    started_at: Time | None = None
    """The time at which the first step started."""
    prepared_at: Time | None = None
    """The time since which the change is ready and waits until its Bundle is admitted to the environment."""
    promoted_at: Time | None = None
    """The time at which the change landed."""
    merged_at: Time | None = None
    """The time of the merge."""
    health_deadline: Time | None = None
    """The time at which the promotion fails unless it is Verified by then."""
    health: HealthStatus | None = None
    """The progress of the health check."""
    verifying_since: Time | None = None
    """The time since which the environment has been healthy without a break, while its metrics are asked."""
    verified_at: Time | None = None
    """The time at which the environment was Verified."""
    healthy: bool | None = None
    """Whether the Verified Bundle is still healthy: false while it is Degraded or cannot be observed.

    Dependents wait.
    """
    healthy_since: Time | None = None
    """The time since which it has been healthy without a break."""
    healthy_for: Span | None = None
    """The healthy time before `healthySince` and since it was last Degraded.

    Time without observation does not count.
    """
    target_drift: TargetDrift | None = None
    """The drift of the environment, while a gate before the next promotion to it reads `targetDrift`."""
    evidence: Evidence | None = None
    """The evidence of the promotion, once it is Verified or Failed."""
    delegated_to: ShortText | None = None
    """The delivery controller that is waited for."""
    delegated_status: ShortText | None = None
    """The state that the delivery controller reports."""

    @property
    def has_ended(self) -> bool:
        """Return whether the promotion has ended."""
        return self.state in ENDED_STATES


class PromotionStep(Resource):
    resource: ClassVar[ResourceType] = PROMOTION_STEP

    spec: PromotionStepSpec
    """The promotion to execute."""
    status: PromotionStepStatus = Field(default_factory=PromotionStepStatus)
    """The progress of the promotion."""
