"""The decisions about a Bundle: its next action, with its phase and the texts of its condition Ready (pure).

`Ready` is True only when every environment that the Bundle is meant for *now* is Verified. It carries the generation it
was computed from, which `kubectl wait` compares, so a target that moves forward makes it False until the new
environments are Verified too.
"""

from __future__ import annotations

from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.promotion.api import Pipeline
from kardinal.promotion.api.bundle import BundlePhase
from kardinal.promotion.api.commands import create_command
from kardinal.promotion.api.names import LABEL_PIPELINE, WAITING_FOR_GRAPH
from kardinal.promotion.translation.errors import (
    GraphChanged,
    GraphRefused,
    InvalidSpec,
    Problem,
    PromotionError,
    SkipDenied,
)
from kardinal.promotion.views.states import command_of
from kardinal_controller.bundles.contenders import Contender
from kardinal_controller.bundles.failures import DueRollback
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.progress import is_displaced
from kardinal_controller.bundles.rules import Projection

__all__ = [
    "Action",
    "Admit",
    "Create",
    "Decision",
    "Delete",
    "Extend",
    "Leave",
    "LookUp",
    "Note",
    "Report",
    "RollBack",
    "StartLater",
    "effect",
    "from_steps",
    "graph_lost",
    "label_missing",
    "phase_kept",
    "pipeline_lost",
    "refused",
    "superseded",
    "waiting_for_author",
    "waiting_for_graph",
    "waiting_for_newer",
    "waiting_for_pipeline",
]


@dataclass(frozen=True, slots=True)
class Leave:
    """Leave the Bundle alone: it is being deleted."""


@dataclass(frozen=True, slots=True)
class Note:
    """Write the answers to new requests into the status; the next decision follows from them."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """Request a look-up of the tags of the Bundle and end the run; the result causes the next run."""


@dataclass(frozen=True, slots=True)
class StartLater:
    """End the run, and run again at `until`, in seconds of the monotonic clock: the Bundle must not start earlier."""

    until: float


@dataclass(frozen=True, slots=True)
class Create:
    """Create the Graph of the Bundle."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Admit:
    """Look at the Graph that a person has written for the Bundle; if it is admitted, promote the Bundle by it."""

    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Extend:
    """Add to the Graph the nodes that the intent of the Bundle needs and the Graph lacks, if any."""

    graph: JsonObject
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class RollBack:
    """Create the rollback that follows from a failure."""

    due: DueRollback


@dataclass(frozen=True, slots=True)
class Report:
    """Write phase, reason and message of the decision into the status, and do nothing else."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Write phase, reason and message of the decision into the status, then delete the Graph and end the run."""

    graph: JsonObject


Action = Leave | Note | LookUp | StartLater | Create | Admit | Extend | RollBack | Report | Delete


@dataclass(frozen=True, slots=True)
class Decision:
    """The next action for a Bundle, and the phase, reason and message of its status.

    With `Report` and `Delete`, `reason` and `message` are those of the condition Ready. With every other action the
    status is not written from the decision: the phase is the one that the Bundle has, and the message is for the log.
    """

    action: Action
    phase: BundlePhase
    reason: str
    message: str
    invalid: str | None = None
    """The reason of the condition InvalidSpec, such as `UnknownEnvironment`; None where the spec is valid."""
    has_graph: bool = False
    """Whether the Bundle is known to have a Graph."""
    recreated: bool = False
    """Whether its Graph was created a second time."""


def effect(facts: Facts, action: Action, why: str) -> Decision:
    """Return the decision for an action that comes before the status is written; `why` is for the log."""
    return Decision(action, facts.bundle.status.phase or "Available", type(action).__name__, why)


def from_steps(projection: Projection, *, recreated: bool = False) -> Decision:
    """Return the decision to report the state of the Graph and of the steps.

    `recreated`: the Graph was created a second time.
    """
    found = projection.progress
    trouble = projection.trouble
    return Decision(
        Report(),
        phase=found.phase,
        reason="GraphTrouble" if trouble else found.reason,
        message=trouble or found.message + _what_to_do(projection, found.phase),
        has_graph=True,
        recreated=recreated,
    )


def _what_to_do(projection: Projection, phase: BundlePhase) -> str:
    """Return the command that goes on from a phase in which nothing more happens; empty in others."""
    facts = projection.facts
    name = facts.bundle.metadata.name
    entries = projection.environments
    ended = sorted((entry.stopped is not None, each) for each, entry in entries.items() if entry.state == "Failed")
    failed = ended[0][1] if ended else None
    if phase == "Failed" and failed in facts.drift.fields:
        again = create_command(facts.bundle, facts.label) or "create another Bundle of these artifacts"
        return f"; the Pipeline has changed since; to try with today's: {again}"
    if phase == "Failed" and failed is not None:
        back = {each: entry.rolled_back_by for each, entry in entries.items() if entry.rolled_back_by}
        told = "".join(f"; Bundle {rollback} rolls {each} back" for each, rollback in back.items())
        return f"{told}; to try again: kardinal retry {name} --env {failed}"
    lost = next((each for each, entry in entries.items() if is_displaced(entry)), None)
    if phase == "Superseded" and lost is not None:
        return f"; to have it all the same: kardinal promote {facts.label} --bundle {name} --env {lost}"
    return ""


def phase_kept(facts: Facts) -> Decision:
    """Return the decision to report the phase that the Bundle has already; its environments may still change."""
    status = facts.bundle.status
    ready = status.condition("Ready")
    return Decision(
        Report(),
        phase=status.phase or "Available",
        reason=ready.reason if ready else "Unknown",
        message=ready.message if ready else "",
    )


def superseded(message: str) -> Decision:
    """Return the decision for a Bundle without a Graph to which newer Bundles leave no environment."""
    return Decision(Report(), "Superseded", "Superseded", message)


def waiting_for_newer(newer: Contender) -> Decision:
    """Return the decision for a Bundle that does not start as long as the Bundle `newer` may start."""
    return Decision(Report(), "Available", "Waiting", f"Bundle {newer.name} is newer and about to start")


def waiting_for_pipeline(facts: Facts) -> Decision:
    """Return the decision for a Bundle that has not started because its Pipeline does not exist."""
    problem = _pipeline_not_found(facts)
    return Decision(Report(), "Available", problem.reason, f"{problem.message}: {problem.remedy}")


def waiting_for_author(facts: Facts) -> Decision:
    """Return the decision for a Bundle whose Graph a person writes and that has none yet."""
    name = facts.bundle.metadata.name
    command = command_of("Bundle", WAITING_FOR_GRAPH, pipeline=facts.label, bundle=name)
    message = f"a person writes its Graph, which has its name and spec.bundleRef: {name}; to print one: {command}"
    return Decision(Report(), "Available", WAITING_FOR_GRAPH, message)


def waiting_for_graph() -> Decision:
    """Return the decision for a Bundle that a person requested again while its Graph is being deleted."""
    return Decision(Report(), "Promoting", "GraphLeaving", "it goes on as soon as its earlier Graph is gone")


def pipeline_lost(facts: Facts) -> Decision:
    """Return the decision for a Bundle whose intent has changed and whose Pipeline was deleted."""
    return refused(facts, InvalidSpec([_pipeline_not_found(facts)]))


def label_missing(facts: Facts) -> Decision:
    """Return the decision for a Bundle that names no Pipeline."""
    problem = Problem(
        f"Bundle/{facts.bundle.metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "NoPipeline",
        "the Bundle does not say which Pipeline it is for",
        "set the label to the name of a Pipeline",
    )
    return refused(facts, InvalidSpec([problem]))


def graph_lost(facts: Facts) -> Decision:
    """Return the decision for a Bundle whose Graph was deleted and is not created again."""
    again = create_command(facts.bundle, facts.label) or "create another Bundle"
    message = f"its Graph was deleted; to promote these artifacts: {again}"
    return Decision(Report(), "Failed", "GraphDeleted", message)


def refused(facts: Facts, error: PromotionError) -> Decision:
    """Return the decision for a Bundle that cannot be translated; a Graph that exists is walked meanwhile."""
    if isinstance(error, SkipDenied):
        return Decision(Report(), "SkipDenied", "SkipDenied", str(error))
    if isinstance(error, GraphRefused):
        return Decision(Report(), "Available", WAITING_FOR_GRAPH, str(error))
    if isinstance(error, InvalidSpec):
        return Decision(Report(), "Failed", "InvalidSpec", str(error), invalid=error.problems[0].reason)
    return Decision(
        Report(),
        phase="Promoting" if facts.bundle.status.phase == "Promoting" else "Available",
        reason=type(error).__name__,
        message=str(error),
        # Reported as an invalid spec, so that the intent is tried again instead of counting as done.
        invalid="GraphChanged" if isinstance(error, GraphChanged) else None,
    )


def _pipeline_not_found(facts: Facts) -> Problem:
    metadata = facts.bundle.metadata
    return Problem(
        f"Bundle/{metadata.name}",
        f"metadata.labels[{LABEL_PIPELINE}]",
        "PipelineNotFound",
        f"there is no Pipeline {facts.label} in namespace {metadata.namespace}",
        "the Bundle goes on as soon as there is one",
    )
