"""The effect of a step: one asynchronous `run` beside its declaration (`kardinal.promotion.steps.declaration`).

A step reads the PromotionStep, the Bundle and the facts of the steps before it, and returns a result; it never writes
the status. A step may be run any number of times: a process can die between an effect and its note in the status, so a
step looks for each of its effects (a commit, a pull request) before it makes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypedDict

from kardinal.edits.images import ImageChange
from kardinal.git import BranchSubscription, Repository
from kardinal.models.base import Condition
from kardinal.objects import Key
from kardinal.promotion.api import Bundle, PromotionStep, names
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.api.health import HealthStatus
from kardinal.promotion.api.promotion_step import PromotionStepStatus, Proposal, PullRequestStatus, StepProgress
from kardinal.promotion.sources.edit_sources import Address
from kardinal.promotion.steps.commit_plan import commit_message, edit_of, image_changes_of
from kardinal.promotion.steps.declaration import PlannedStep, Role, Surroundings
from kardinal.promotion.steps.facts import StepFacts, facts_of
from kardinal.tree.commit_message import CommitMessage
from kardinal.tree.edit import Edit, Tree
from kardinal_agent.health import HealthChecks
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.remotes import Remote

__all__ = [
    "Announcement",
    "Done",
    "Flag",
    "StatusFields",
    "Step",
    "StepContext",
    "StepResult",
    "Subscribe",
    "Wait",
    "WaitKind",
    "Waiting",
]

Subscribe = Callable[[Callable[[], None]], BranchSubscription]
"""Starts a subscription that calls back when the step should be run again, until it is closed."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event about an effect of a step."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A condition that the promotion keeps from now on."""

    condition: str
    message: str


class StatusFields(TypedDict, total=False):
    """The fields of the status that a step may set."""

    commit: str | None
    tree: str
    diff: str | None
    promoted_at: datetime
    merged_at: datetime
    pull_request: PullRequestStatus
    proposal: Proposal
    pr_url: str
    health: HealthStatus | None
    health_deadline: datetime | None
    verifying_since: datetime | None
    delegated_to: str
    delegated_status: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Done:
    """The step is finished. `outputs` are noted under its name; its declaration lists the ones that are facts."""

    message: str
    outputs: Mapping[str, Any] = field(default_factory=dict)
    update: StatusFields = field(default_factory=StatusFields)
    announcement: Announcement | None = None
    flag: Flag | None = None


class WaitKind(StrEnum):
    """The kinds of reasons for which a promotion waits."""

    START = "start"
    """The promotion may not start yet: an upstream environment is not Verified, for example."""
    ADMISSION = "admission"
    """The change is ready, and the Bundle is not admitted to the environment."""
    HELD = "held"
    """A freeze or a gate forbids the next effect."""
    BLOCKED = "blocked"
    """Something is missing, such as a digest, that mostly a person has to put right."""
    STEP = "step"
    """The step has not reached its end, such as a rollout of which 1 of 2 replicas are updated."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A reason to wait, in words."""

    kind: WaitKind
    message: str


@dataclass(frozen=True)
class Waiting:
    """The step cannot go on now; it is run again at `until` even if nothing changes.

    `kind` says why; it defaults to the step itself, which nothing holds or blocks.
    `needs_person`: a person must act outside of kardinal, so `message` is written to the status at once.
    `subscribe` starts a subscription to changes after which the step should be run again.
    `location` is kept in the status for the next run of the step.
    """

    message: str
    until: datetime | None = None
    kind: WaitKind = WaitKind.STEP
    needs_person: bool = False
    subscribe: Subscribe | None = None
    update: StatusFields = field(default_factory=StatusFields)
    location: str | None = None


StepResult = Done | Waiting


@dataclass(frozen=True)
class StepContext:
    """The input of a step. Its callables ask again at each call, or fetch their value at the first one."""

    step: PromotionStep
    bundle: Bundle
    status: PromotionStepStatus
    sequence: Sequence[PlannedStep]
    index: int
    gates: Callable[[], Sequence[GateResult]]
    metrics: Callable[[], Mapping[str, float]]
    """Returns the values of metrics that the gates have read, by the name of the check."""
    holds: Callable[[], Sequence[str]]
    health: HealthChecks
    now: datetime
    remote: Callable[[], Awaitable[Remote]]
    host_memory: HostMemory
    open_source: Callable[[Address], Awaitable[Repository]]
    surroundings: Surroundings

    @property
    def key(self) -> Key:
        """Return the PromotionStep's namespace and name."""
        return Key(self.step.metadata.namespace, self.step.metadata.name)

    @property
    def facts(self) -> StepFacts:
        """Return the facts of the steps so far."""
        return facts_of(self.status, self.sequence)

    @property
    def planned(self) -> PlannedStep:
        """Return the step that runs: the one at `index` of the sequence."""
        return self.sequence[self.index]

    @property
    def progress(self) -> StepProgress | None:
        """Return the noted progress of this step; None before its first run."""
        return self.status.steps[self.index] if self.index < len(self.status.steps) else None

    @property
    def edits(self) -> Sequence[PlannedStep]:
        """Return the edits of the sequence up to this step, without the skipped ones."""
        skipped = {index for index, progress in enumerate(self.status.steps) if progress.state == "Skipped"}
        found = enumerate(self.sequence[: self.index + 1])
        return [step for index, step in found if step.declaration.edit is not None and index not in skipped]

    @property
    def edit(self) -> Edit:
        """Return one edit that makes the changes of all `edits`."""
        return edit_of(self.step, self.bundle, self.edits, self.surroundings)

    def image_changes(self, tree: Tree) -> Mapping[str, Sequence[ImageChange]]:
        """Return the changes of images by file of `tree` that the edits up to this step make."""
        return image_changes_of(tree, self.step, self.bundle, self.edits, self.surroundings)

    @property
    def message(self) -> CommitMessage:
        """Return the message of the promotion's commit."""
        attempt = _proposed_by(self.step, self.status)
        spec = self.step.spec.model_copy(update={"attempt": attempt})
        return commit_message(self.step.model_copy(update={"spec": spec}), self.bundle)

    @property
    def target(self) -> str:
        """Return the branch that the environment is deployed from."""
        return self.step.spec.target_branch

    @property
    def branch(self) -> str:
        """Return the promotion's own branch, for a pull request: the noted one, otherwise the one to create."""
        return _proposal_branch(self.step, self.status)

    @property
    def proposal(self) -> Proposal:
        """Return the proposal as it is noted, otherwise the one to create."""
        return self.status.proposal or Proposal(branch=self.branch, bundle_uid=self.bundle.metadata.uid)

    @property
    def proposes(self) -> bool:
        """Return whether the change goes through a pull request instead of straight to the target branch."""
        return any(planned.declaration.role is Role.PROPOSE for planned in self.sequence)

    @property
    def merges_itself(self) -> bool:
        """Return whether the agent merges the pull request, which is then for the record only."""
        return any(planned.declaration.role is Role.MERGE for planned in self.sequence)


class Step(Protocol):
    """The effect of one step."""

    async def run(self, context: StepContext) -> StepResult: ...


def _proposal_branch(step: PromotionStep, status: PromotionStepStatus) -> str:
    """Return the noted branch of the proposal, otherwise the one to create: once noted, it stays the same.

    A later attempt that continues with an open proposal keeps its branch, whose commit has the trailers of the attempt
    that made it.
    """
    if status.proposal is not None:
        return status.proposal.branch
    spec = step.spec
    return names.branch_name(step.metadata.namespace, spec.bundle_ref, spec.environment, spec.attempt)


def _proposed_by(step: PromotionStep, status: PromotionStepStatus) -> int | None:
    """Return the attempt in the trailers of the proposal's commit: the one that made it, otherwise the current one."""
    spec = step.spec
    noted = status.proposal.branch if status.proposal is not None else ""
    name = names.branch_name(step.metadata.namespace, spec.bundle_ref, spec.environment)
    if noted == name:
        return None
    # Proposals that are still open may be from a time when the number followed a dash.
    number = noted.removeprefix(f"{name}.").removeprefix(f"{name}-")
    return int(number) if number != noted and number.isdecimal() else spec.attempt
