"""How far a Bundle has come, computed from its steps (pure).

A step knows where it is; the Bundle keeps what must outlive the step. So the entry of an environment follows its step,
except that what was Verified stays: the Graph of a finished Bundle may be deleted, its steps made again and abandoned,
and the evidence of the promotion is still what it was. Only a step that fails in a Bundle that has not finished takes
a verification back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kardinal.api import Graph, PromotionStep
from kardinal.api.bundle import BundlePhase, EnvironmentStatus
from kardinal.api.promotion_step import ENDED_STATES
from kardinal.objects import JsonObject
from kardinal.translation.topology import Topology

__all__ = [
    "Progress",
    "all_steps_finished",
    "environments",
    "graph_trouble",
    "is_over",
    "progress",
]

_STATES_WITH_MESSAGE = frozenset(["WaitingForMerge", "Failed"])
"""States whose message is worth a line on the Bundle; in the others it changes too often to be copied."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The phase of a Bundle that is not superseded, with the reason and the message of its condition Ready."""

    phase: BundlePhase
    reason: str
    message: str


def environments(
    topology: Topology | None,
    steps: Mapping[str, PromotionStep],
    before: Mapping[str, EnvironmentStatus],
    *,
    under_way: bool,
) -> dict[str, EnvironmentStatus]:
    """Return the entry of each environment of the Graph; without a Graph, of each environment in `before`."""
    names = topology.environments if topology is not None else before
    return {name: _entry(steps.get(name), before.get(name), under_way=under_way) for name in names}


def _entry(step: PromotionStep | None, before: EnvironmentStatus | None, *, under_way: bool) -> EnvironmentStatus:
    if step is None:
        return before or EnvironmentStatus(state="Pending")
    status = step.status
    state = status.state or "Pending"
    if before is not None and before.state == "Verified" and state != "Verified":
        taken_back = under_way and state == "Failed"
        if not taken_back:
            return before
    return EnvironmentStatus(
        state=state,
        message=status.message if state in _STATES_WITH_MESSAGE else None,
        promoted_at=status.promoted_at,
        verified_at=status.verified_at,
        commit=status.commit,
        pr_url=status.pr_url,
        evidence=status.evidence,
    )


def progress(entries: Mapping[str, EnvironmentStatus]) -> Progress:
    """Return what the environments add up to."""
    failed = [f"{name}: {entry.message or 'failed'}" for name, entry in entries.items() if entry.state == "Failed"]
    if failed:
        return Progress("Failed", "StepFailed", "; ".join(failed))
    verified = [name for name, entry in entries.items() if entry.state == "Verified"]
    if entries and len(verified) == len(entries):
        return Progress("Verified", "Verified", f"Verified in {', '.join(verified)}")
    return Progress("Promoting", "Promoting", f"{len(verified)} of {len(entries)} environments are Verified")


def is_over(entries: Mapping[str, EnvironmentStatus], topology: Topology) -> bool:
    """Return whether no step can move any more: every environment is Verified, Failed, or behind a failed one."""
    states = {name: entry.state for name, entry in entries.items()}
    return all(
        states.get(name) in ENDED_STATES or any(states.get(upstream) == "Failed" for upstream in topology.before(name))
        for name in topology.environments
    )


def all_steps_finished(steps: Iterable[PromotionStep]) -> bool:
    """Return whether no step is on its way; one that its agent abandoned has failed."""
    return all(step.status.has_ended for step in steps)


def graph_trouble(graph: JsonObject) -> str | None:
    """Return what keeps the engine from creating the nodes of a Graph; None when nothing does."""
    status = Graph.model_validate(graph).status
    for condition in (status.condition("Accepted"), status.condition("Ready")):
        if condition is not None and condition.status == "False":
            return f"{condition.reason}: {condition.message}"
    return None
