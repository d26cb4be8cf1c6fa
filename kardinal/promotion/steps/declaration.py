"""Declare a step: everything that other modules need to know about it, as data.

No other module knows a step by its name. Sequences are validated by the role of each step, the agent decides by the
flags, and the outputs of a step that later steps need are read as facts (`steps/facts.py`). Effects outside the process
are not declared here: `kardinal_agent.steps` registers their code under the name of the declaration. A step that only
changes files needs no such code, because planning and landing are the same for every edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, Literal

from pydantic import ConfigDict

from kardinal.edits.images import ImageChange
from kardinal.models.base import Model
from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.bundle import ArtifactKind
from kardinal.promotion.api.pipeline import StepSpec
from kardinal.promotion.api.promotion_step import PromotionState
from kardinal.promotion.steps.branch_layout import BranchState
from kardinal.promotion.steps.effect import Effect, Notes
from kardinal.rendering.renderer import NO_RENDERER, Renderer
from kardinal.tree.differences import FileChange
from kardinal.tree.edit import Changes, Tree

__all__ = [
    "EditContext",
    "Fact",
    "FileEdit",
    "NoConfig",
    "PlannedStep",
    "RenderSource",
    "Role",
    "StepConfig",
    "StepDeclaration",
    "Surroundings",
]


Fact = Literal["base_commit", "source_commit", "changed", "merged_commit", "merged_by", "approved_by", "mirrors"]
"""A fact that later steps may read: a field of `kardinal.promotion.steps.facts.Facts`."""


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
    """The input of a step; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def time_limit(cls, config: Mapping[str, Any]) -> timedelta | None:
        """Return the time limit of a step with this config, before expressions are evaluated; None for no limit.

        The `timeout` of the step's entry takes precedence.
        """
        return None

    @classmethod
    def reads_from(cls, config: Mapping[str, Any]) -> str | None:
        """Return the name of the input that a step with this config reads from, before expressions are evaluated."""
        return None


class NoConfig(StepConfig):
    """The input of a step without any keys."""


@dataclass(frozen=True, slots=True)
class RenderSource:
    """The commit that an environment's own branch is rendered from.

    `beside` returns its tree for the edit of another tree in the same repository; both trees share one limit on
    reading.
    """

    commit: str
    beside: Callable[[Tree], Tree]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts that edits may use besides the tree.

    `inputs`: for each input by name, a function that returns its tree for the edit of another tree; both share one
    limit. `notes` collects findings about the effect of edits. `differences` holds the file changes between commits, in
    the order in which they apply, by the `ConfigSource` or `Replay` that asked for them.
    """

    inputs: Mapping[str, Callable[[Tree], Tree]] = field(default_factory=dict)
    renderer: Renderer = NO_RENDERER
    notes: Notes = field(default_factory=Notes)
    differences: Mapping[Any, Sequence[Sequence[FileChange]]] = field(default_factory=dict)
    source: RenderSource | None = None
    """With layout `branch`: the commit to render."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditContext:
    """The inputs of an edit. `tree` is the whole repository with the changes of the edits before."""

    step: PromotionStep
    bundle: Bundle
    tree: Tree
    inputs: Mapping[str, Tree]
    """The trees that input steps have opened, by the `as` of the step."""
    renderer: Renderer
    differences: Mapping[Any, Sequence[Sequence[FileChange]]] = field(default_factory=dict)
    """The same as in `Surroundings`."""
    state: BranchState = field(default_factory=BranchState)
    """With layout `branch`: the artifacts that were promoted before. The images and charts of `bundle` include them."""
    before: Tree | None = None
    """For `verify`: the tree before the edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """The functions of a step that changes files.

    `plan` returns the changes for a context and the step's config; it may run several times, on newer trees.

    `image_changes` compares a changed file before (None for a new file) and after (None for a deleted file), for the
    text of a pull request.

    `check` raises `EditError` if a tree lacks a file that the step needs, whatever the Bundle.

    `verify` returns whether the changes have an effect for the artifacts of the Bundle itself; its context has both the
    tree after the changes and the tree before them.
    """

    plan: Callable[[EditContext, Any], Changes]
    image_changes: Callable[[bytes | None, bytes | None], Sequence[ImageChange]]
    check: Callable[[Tree, PromotionStep, Any], None] | None = None
    verify: Callable[[EditContext, Any], Effect] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDeclaration:
    """The declaration of one step."""

    name: str
    """The value of `uses` in a sequence."""
    about: str = ""
    """A sentence for users about the effect of the step."""
    role: Role | None = None
    """None for a step that may be anywhere before the proof."""
    config: type[StepConfig] = NoConfig
    state: PromotionState = "Promoting"
    """The state of a promotion while it runs this step. Defaults to Promoting."""
    outside: bool = False
    """Whether the step has effects outside the process; if so, the status is written before it starts."""
    permission: bool = False
    """Whether a freeze or a closed gate keeps the step from starting.

    Without it, a step may ask for permission later.
    """
    edit: FileEdit | None = None
    """The functions that edit files; required for the role EDIT."""
    renders: bool = False
    """For the role EDIT: whether its files are the whole output of an environment with a branch of its own."""
    takes: frozenset[ArtifactKind] | None = None
    """For the role EDIT: the kinds of artifacts that it sets; None if it may set any."""
    writes_digests: bool = False
    """For the role EDIT: whether it writes the digest of each image that has one, and fails if it cannot.

    `update.pinDigest` relies on this.
    """
    outputs: Mapping[str, Fact] = field(default_factory=dict)
    """The keys of the step's outputs that later steps read, each with the name of its fact."""
    with_config: StepDeclaration | None = None
    """The declaration of the step when its entry has a `config`, if it is then another step (see `git-clone`)."""
    effect: Callable[[], Any] | None = None
    """Creates the agent's code of a step of another package; `kardinal_agent.steps` has that of built-in steps."""

    def __post_init__(self) -> None:
        if (self.role is Role.EDIT) != (self.edit is not None):
            raise ValueError(f"step {self.name}: `edit` belongs to the role EDIT, and only to it")

    @property
    def lands(self) -> bool:
        """Return whether the change may get onto the target branch in this step."""
        return self.role in (Role.PUSH, Role.AWAIT, Role.MERGE)

    @property
    def proves(self) -> bool:
        """Return whether this is the last step: it has a deadline, and its success makes the environment Verified."""
        return self.role is Role.PROVE


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One step of a valid sequence: its declaration, its parsed config, and its entry as written."""

    declaration: StepDeclaration
    config: StepConfig
    spec: StepSpec

    @property
    def name(self) -> str:
        return self.declaration.name

    @property
    def time_limit(self) -> timedelta | None:
        """Return the time limit of the step, counted from its start; None for no limit."""
        return self.spec.timeout or self.declaration.config.time_limit(self.spec.config or {})
