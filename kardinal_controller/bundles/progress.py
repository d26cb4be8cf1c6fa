"""Compute how far a Bundle has come from its PromotionSteps (pure).

The entry of an environment in the Bundle's status follows its PromotionStep, but outlives it: an entry that is Verified
stays so, with its evidence, when the Graph of an ended Bundle is deleted, or its steps are created again and abandoned.
Only a step that fails in a Bundle that has not ended changes a Verified entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import WHEN_FALSE, BundlePhase, EnvironmentStatus
from kardinal.promotion.api.promotion_step import NO_AGENT, PromotionStepStatus
from kardinal.promotion.translation.environment_order import ancestors
from kardinal.promotion.translation.route import Route
from kardinal.promotion.translation.topology import Topology

__all__ = [
    "Progress",
    "all_steps_finished",
    "environments",
    "graph_trouble",
    "is_displaced",
    "left_out_entries",
    "progress",
]

_KEPT = (
    *("attempt", "attempts", "request", "tags_checked_at", "admitted_at"),
    *("displaced_by", "stopped", "rolled_back_by", "replaced_at"),
)
"""The fields of an entry that are not copied from its PromotionStep."""

_FALSE = "its condition is false"

_STATES_WITH_MESSAGE = frozenset(["WaitingForMerge", "Failed"])
"""States whose message is copied to the Bundle; in other states only the message of a failure that is retried is."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The phase of a Bundle, with the reason and the message of its condition Ready."""

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
    """Return the entry of each environment of the Graph, in its order, and after them of each other in `before`.

    The order of `before` says nothing: an API server returns the keys of a map sorted. Its environments that the Bundle
    leaves out are not among them: see `left_out_entries`.
    """
    before = {name: entry for name, entry in before.items() if entry.reason != WHEN_FALSE}
    names = dict.fromkeys([*(topology.environments if topology is not None else ()), *before])
    return {name: _entry(steps.get(name), before.get(name), under_way=under_way) for name in names}


def left_out_entries(
    route: Route | None, before: Mapping[str, EnvironmentStatus], there: Collection[str]
) -> dict[str, EnvironmentStatus]:
    """Return the entries of the environments that a Bundle leaves out because their condition is false.

    An entry stays as it was made with the Graph, whatever the condition would say later, until the Graph has the
    environment. `there` are the environments of the Graph.
    """
    known = {name: entry for name, entry in before.items() if entry.reason == WHEN_FALSE}
    values = route.left_out if route is not None else {}
    made = EnvironmentStatus(state="Skipped", reason=WHEN_FALSE)
    found = {name: made.model_copy(update={"message": f"{_FALSE}: {text}"}) for name, text in values.items()}
    return {name: entry for name, entry in (found | known).items() if name not in there}


def _entry(step: PromotionStep | None, before: EnvironmentStatus | None, *, under_way: bool) -> EnvironmentStatus:
    if step is None or step.status.attempt != (before.attempt if before is not None else None):
        # The status may be that of an earlier attempt, which the entry does not follow any more. A message without one
        # says what the environment waits for, which is found out anew.
        waiting = before is None or before.state == "Pending"
        before = before or EnvironmentStatus(state="Pending")
        return before.model_copy(update={"message": None}) if waiting else before
    status = step.status
    state = status.state or "Pending"
    kept = {name: getattr(before, name) for name in _KEPT} if before is not None else {}
    if before is not None and before.state == "Verified" and state != "Verified":
        taken_back = under_way and state == "Failed"
        if not taken_back:
            return before
    return EnvironmentStatus(
        state=state,
        message=_message(status),
        held=_held(status),
        prepared_at=status.prepared_at,
        started_at=status.started_at,
        promoted_at=status.promoted_at,
        verified_at=status.verified_at,
        healthy=status.healthy,
        healthy_since=status.healthy_since,
        healthy_for=status.healthy_for,
        commit=status.commit,
        pr_url=status.pr_url,
        evidence=status.evidence,
        **kept,
    )


def _message(status: PromotionStepStatus) -> str | None:
    """Return the message of a step that is copied to the Bundle; None if there is none, or if it changes too often."""
    if (unserved := status.condition(NO_AGENT)) is not None:
        return unserved.message
    degraded = status.condition("Degraded")
    if status.healthy is False and degraded is not None:
        return degraded.message
    told = status.state in _STATES_WITH_MESSAGE or status.retry is not None
    return status.message if told else None


def _held(status: PromotionStepStatus) -> str | None:
    """Return the message of the condition Held of a step; None if the step is not held."""
    condition = status.condition("Held")
    return condition.message if condition is not None and condition.status == "True" else None


def progress(
    entries: Mapping[str, EnvironmentStatus], upstreams: Mapping[str, Sequence[str]] | None = None
) -> Progress:
    """Return the phase of a Bundle that follows from the entries of its environments.

    A Bundle is Superseded if it was superseded in at least one environment and can go on in none.
    """
    displaced = {name: entry.displaced_by for name, entry in entries.items() if is_displaced(entry)}
    if displaced and _nothing_is_left(entries, upstreams or {}):
        return Progress("Superseded", "Superseded", _superseded_by(displaced))
    failed = [f"{name}: {entry.message or 'failed'}" for name, entry in entries.items() if entry.state == "Failed"]
    if failed:
        return Progress("Failed", "StepFailed", "; ".join(failed))
    verified = [name for name, entry in entries.items() if entry.state == "Verified"]
    if entries and len(verified) == len(entries):
        return Progress("Verified", "Verified", f"Verified in {', '.join(verified)}")
    return Progress("Promoting", "Promoting", f"{len(verified)} of {len(entries)} environments are Verified")


def is_displaced(entry: EnvironmentStatus) -> bool:
    """Return whether another Bundle has superseded this one in an environment before it was Verified there."""
    return entry.displaced_by is not None and entry.state != "Verified"


def _nothing_is_left(entries: Mapping[str, EnvironmentStatus], upstreams: Mapping[str, Sequence[str]]) -> bool:
    """Return whether each environment is Verified, Failed, superseded, or downstream of a Failed or superseded one."""
    stopped = {name for name, entry in entries.items() if entry.state == "Failed" or is_displaced(entry)}
    return all(
        name in stopped or entry.state == "Verified" or not stopped.isdisjoint(ancestors(upstreams, name))
        for name, entry in entries.items()
    )


def _superseded_by(displaced: Mapping[str, str | None]) -> str:
    """Return a message that names the newer Bundles with the environments in which each has superseded this one."""
    by: dict[str, list[str]] = {}
    for environment, newer in sorted(displaced.items()):
        by.setdefault(str(newer), []).append(environment)
    return "; ".join(f"superseded by {newer} in {', '.join(names)}" for newer, names in by.items())


def all_steps_finished(steps: Iterable[PromotionStep]) -> bool:
    """Return whether every step has ended; a step that its agent has abandoned counts as Failed."""
    return all(step.status.has_ended for step in steps)


def graph_trouble(graph: JsonObject) -> str | None:
    """Return what keeps the engine from creating the nodes of a Graph; None when nothing does."""
    status = graph.get("status") or {}
    for condition in (find_condition(status, "Accepted"), find_condition(status, "Ready")):
        if condition is not None and condition["status"] == "False":
            return f"{condition['reason']}: {condition.get('message', '')}"
    return None
