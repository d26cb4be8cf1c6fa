"""The effect of a step: one asynchronous `run` beside its declaration (`kardinal.steps.declaration`).

A step reads the PromotionStep, the Bundle and the facts that the steps before it have found, and answers with a result;
it never writes status. It may run any number of times: a process can die between an effect and the note of it, so a
step looks for every effect outside the process before it makes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypedDict

from kardinal.api import Bundle, PromotionStep
from kardinal.api.base import Condition
from kardinal.api.evidence import GateResult
from kardinal.api.health import HealthStatus
from kardinal.api.promotion_step import PromotionStepStatus, PullRequestStatus, StepProgress
from kardinal.git import Repository, Subscription
from kardinal.git.edit_sources import Address
from kardinal.objects import Key
from kardinal.steps.commit_message import CommitMessage
from kardinal.steps.commit_plan import commit_message, edit_of, image_changes_of
from kardinal.steps.declaration import PlannedStep, Role, Surroundings
from kardinal.steps.edit import Edit, Tree
from kardinal.steps.facts import Facts, facts_of
from kardinal.steps.images import ImageChange
from kardinal_agent.health import HealthChecks
from kardinal_agent.hosts.memory import HostMemory
from kardinal_agent.remotes import Remote
from kardinal_agent.steps.proposal_branch import proposal_branch, proposed_by

__all__ = ["Announcement", "Done", "Flag", "StatusFields", "Step", "StepContext", "StepResult", "Subscribe", "Waiting"]

Subscribe = Callable[[Callable[[], None]], Subscription]
"""Calls back, until it is closed, whenever another look is worth it."""


@dataclass(frozen=True, slots=True)
class Announcement:
    """An Event about what a step has done."""

    reason: str
    note: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Flag:
    """A condition that the promotion has from now on, and that nothing takes off again."""

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
    pr_url: str
    health: HealthStatus | None
    delegated_to: str
    delegated_status: str
    conditions: tuple[Condition, ...]


@dataclass(frozen=True)
class Done:
    """The step has done its part. `outputs` are noted under its name; its declaration says which of them are facts."""

    message: str
    outputs: Mapping[str, Any] = field(default_factory=dict)
    update: StatusFields = field(default_factory=StatusFields)
    announcement: Announcement | None = None
    flag: Flag | None = None


@dataclass(frozen=True)
class Waiting:
    """The step cannot go on now; `until` is when it must look again even if nothing happens.

    `held`: it could, if nothing held the promotion. `blocked`: it could, if a person put right what `message` says.
    `needs_person`: a person must act outside kardinal, so `message` is written at once.
    `subscribe` is how to learn that another look is worth it.
    `location` is kept in the status, where the next run of the step finds it.
    """

    message: str
    until: datetime | None = None
    held: bool = False
    blocked: bool = False
    needs_person: bool = False
    subscribe: Subscribe | None = None
    update: StatusFields = field(default_factory=StatusFields)
    location: str | None = None


StepResult = Done | Waiting


@dataclass(frozen=True)
class StepContext:
    """Everything a step may look at; what is called is asked anew, or fetched when it is first needed."""

    step: PromotionStep
    bundle: Bundle
    status: PromotionStepStatus
    sequence: Sequence[PlannedStep]
    index: int
    gates: Callable[[], Sequence[GateResult]]
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
    def facts(self) -> Facts:
        """Return what the steps so far have found out."""
        return facts_of(self.status, self.sequence)

    @property
    def planned(self) -> PlannedStep:
        """Return the step itself."""
        return self.sequence[self.index]

    @property
    def progress(self) -> StepProgress | None:
        """Return what is noted of the step itself."""
        return self.status.steps[self.index] if self.index < len(self.status.steps) else None

    @property
    def edits(self) -> Sequence[PlannedStep]:
        """Return the edits of the sequence up to this step, without those that were left out."""
        skipped = {index for index, progress in enumerate(self.status.steps) if progress.state == "Skipped"}
        found = enumerate(self.sequence[: self.index + 1])
        return [step for index, step in found if step.declaration.edit is not None and index not in skipped]

    @property
    def edit(self) -> Edit:
        """Return the edits up to this step as one."""
        return edit_of(self.step, self.bundle, self.edits, self.surroundings)

    def image_changes(self, tree: Tree) -> Mapping[str, Sequence[ImageChange]]:
        """Return which images the edits up to this step change in which file of `tree`."""
        return image_changes_of(tree, self.step, self.bundle, self.edits, self.surroundings)

    @property
    def message(self) -> CommitMessage:
        """Return the message of the promotion's commit."""
        attempt = proposed_by(self.step, self.status)
        spec = self.step.spec.model_copy(update={"attempt": attempt})
        return commit_message(self.step.model_copy(update={"spec": spec}), self.bundle)

    @property
    def target(self) -> str:
        """Return the branch that the environment is deployed from."""
        return self.step.spec.target_branch

    @property
    def branch(self) -> str:
        """Return the promotion's own branch, for a pull request: the one that is noted, else the one to make."""
        return proposal_branch(self.step, self.status, self.sequence)

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
