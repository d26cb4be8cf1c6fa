"""Declaring a step: everything about it that others decide by, as data.

No other module knows a step by its name. Sequences are checked by the role that each step declares, the agent decides
by the flags, and what a step leaves for later ones is read as a fact (`kardinal.steps.facts`). What a step does outside
the process is not here: `kardinal_agent.steps` registers that under the name of the declaration. A step that only
changes files needs nothing there, because planning and landing are the same for every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Literal

from pydantic import ConfigDict

from kardinal.api import Bundle, PromotionStep
from kardinal.api.base import Model
from kardinal.api.bundle import ArtifactKind
from kardinal.api.pipeline import StepSpec
from kardinal.api.promotion_step import PromotionState
from kardinal.steps.branch_layout import BranchState
from kardinal.steps.config_history import FileChange
from kardinal.steps.edit import Changes, Tree
from kardinal.steps.effect import Effect, Notes
from kardinal.steps.images import ImageChange
from kardinal.steps.rendering import NO_RENDERER, Renderer

__all__ = [
    "EditContext",
    "Fact",
    "FileEdit",
    "NoConfig",
    "PlannedStep",
    "Role",
    "Source",
    "StepConfig",
    "StepDeclaration",
    "Surroundings",
]


Fact = Literal["base_commit", "source_commit", "changed", "merged_commit", "merged_by", "approved_by", "mirrors"]
"""A fact that later steps may read: a field of `kardinal.steps.facts.Facts`."""


class Role(Enum):
    """The part of a step in bringing a change to an environment."""

    OPEN = "opens the tree to edit"
    INPUT = "opens what later steps read from"
    EDIT = "changes files"
    COMMIT = "makes the change a commit"
    PUSH = "puts the commit on a branch: the target branch, or one of its own where a pull request follows"
    PROPOSE = "opens a pull request"
    AWAIT = "waits until a person has merged the pull request"
    MERGE = "merges the pull request"
    PROVE = "proves that the environment runs what was promoted"


class StepConfig(Model):
    """The input of a step; a key it does not know is an error."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def time_limit(cls, config: Mapping[str, Any]) -> timedelta | None:
        """Return how long a step with this config, as written, may take where its entry has no `timeout`."""
        return None

    @classmethod
    def reads_from(cls, config: Mapping[str, Any]) -> str | None:
        """Return the name of the input that a step with this config, as written, reads from."""
        return None


class NoConfig(StepConfig):
    """The input of a step that has nothing to choose."""


@dataclass(frozen=True, slots=True)
class Source:
    """A commit that an environment's own branch is rendered from.

    `beside` returns its tree for an edit of another tree of the same repository, whose limits it shares.
    """

    commit: str
    beside: Callable[[Tree], Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts that edits may use besides the tree: inputs by name, and a renderer.

    An input returns its tree for an edit of another tree, whose limits it shares.
    `notes` takes what is found out about the effect of edits.
    `differences` has the files that differ between commits, in the order in which they apply, by what asked for them.
    """

    inputs: Mapping[str, Callable[[Tree], Tree]] = field(default_factory=dict)
    renderer: Renderer = NO_RENDERER
    notes: Notes = field(default_factory=Notes)
    differences: Mapping[Any, Sequence[Sequence[FileChange]]] = field(default_factory=dict)
    source: Source | None = None
    """With layout `branch`: what is rendered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext:
    """Everything an edit is made from. `tree` is the whole repository, as the edits before have left it."""

    step: PromotionStep
    bundle: Bundle
    tree: Tree
    inputs: Mapping[str, Tree]
    """The trees that other steps have opened, by their `as`."""
    renderer: Renderer
    differences: Mapping[Any, Sequence[Sequence[FileChange]]] = field(default_factory=dict)
    """As in `Surroundings`."""
    state: BranchState = field(default_factory=BranchState)
    """With layout `branch`: what the environment has been given before; `bundle` has its images and charts as well."""
    before: Tree | None = None
    """For `verify`: the tree as the edit has found it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """How a step changes files.

    `plan` returns the changes for a context and the step's config; it may run several times, on newer trees.
    `image_changes` compares a changed file before (None for a new file) and after (None for one that is deleted), for
    the text of a pull request. `check` raises `EditError` where a tree lacks what the step needs, whatever the Bundle.
    `verify` says whether the changes have an effect for what the Bundle itself brings; its context has the tree after
    them, and the one before.
    """

    plan: Callable[[EditContext, Any], Changes]
    image_changes: Callable[[bytes | None, bytes | None], Sequence[ImageChange]]
    check: Callable[[Tree, PromotionStep, Any], None] | None = None
    verify: Callable[[EditContext, Any], Effect] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDeclaration:
    """One step."""

    name: str
    """The value of `uses` in a sequence."""
    about: str = ""
    """A sentence for users about the effect of the step."""
    role: Role | None = None
    """None for a step that may be anywhere before the proof."""
    config: type[StepConfig] = NoConfig
    state: PromotionState = "Promoting"
    """The state of a promotion while it is at this step."""
    outside: bool = False
    """Whether the step has effects outside the process: the status is written before it starts."""
    permission: bool = False
    """Whether a freeze or a gate keeps the step from starting; a step without it may ask at a point of its own."""
    edit: FileEdit | None = None
    """For the role EDIT."""
    renders: bool = False
    """For the role EDIT: whether what it writes is the whole output of an environment with a branch of its own."""
    takes: frozenset[ArtifactKind] | None = None
    """For the role EDIT: the artifacts of a Bundle that it brings; None for one that may bring any."""
    writes_digests: bool = False
    """For the role EDIT: whether it writes the digest of each image that has one, or refuses to where there is no place
    for it, so that `update.pinDigest` can rely on it.
    """
    outputs: Mapping[str, Fact] = field(default_factory=dict)
    """Which keys of the step's outputs later steps read, and the facts that they are."""
    with_config: StepDeclaration | None = None
    """The declaration of an entry with a `config`, where that makes another step of it."""
    effect: Callable[[], Any] | None = None
    """Makes the agent's part of a step of another package; that of built-in steps is in `kardinal_agent.steps`."""

    def __post_init__(self) -> None:
        if (self.role is Role.EDIT) != (self.edit is not None):
            raise ValueError(f"step {self.name}: `edit` belongs to the role EDIT, and only to it")

    @property
    def lands(self) -> bool:
        """Return whether the change may get onto the target branch in this step."""
        return self.role in (Role.PUSH, Role.AWAIT, Role.MERGE)

    @property
    def proves(self) -> bool:
        """Return whether this is the last step: it has a deadline, and its success is the effect."""
        return self.role is Role.PROVE


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a sequence that has no problems: its declaration, its config as read, and its entry as written."""

    declaration: StepDeclaration
    config: StepConfig
    spec: StepSpec

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def time_limit(self) -> timedelta | None:
        """Return how long the step may take from the moment it is entered; None for as long as it does."""
        return self.spec.timeout or self.declaration.config.time_limit(self.spec.config or {})
