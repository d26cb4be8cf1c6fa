"""The Events that let `kubectl describe bundle` tell what happened to a Bundle (pure).

Each follows from a difference between the status before a write and the status that was written, so that it is told
once: a run that changes nothing tells nothing, and neither does a process that starts again. What gates answered is
told by their own reconciler, `kardinal_controller.gates.events`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kardinal.api.bundle import BundleStatus, EnvironmentStatus
from kardinal_controller.bundles.notices import OUTDATED, PAUSED
from kardinal_controller.bundles.progress import is_displaced

__all__ = ["EmitEvent", "story"]

_UNSEEN = EnvironmentStatus(state="Pending")
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Emit a Kubernetes Event about the Bundle."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


def story(name: str, before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each thing that has happened to the Bundle `name`, apart from its condition Ready."""
    yield from _notices(before, after)
    failed_told = _ready_turned(before, after, "StepFailed")
    for environment, entry in after.environments.items():
        known = before.environments.get(environment, _UNSEEN)
        if known.attempt != entry.attempt:
            known = _UNSEEN
        yield from _proposal(environment, known, entry)
        yield from _hold(environment, known, entry)
        yield from _verification(environment, known, entry, after.version)
        if not failed_told and _turned(known, entry, "Failed") and not is_displaced(entry):
            again = f"to try again: kardinal retry {name} --env {environment}"
            yield EmitEvent("Warning", "StepFailed", f"{environment}: {entry.message or 'failed'}; {again}")
    if not _ready_turned(before, after, "Superseded"):
        yield from _losses(before, after)


def _notices(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Tell of a pause and its end, and of a Pipeline or gates that are others than those the Bundle goes by."""
    paused, was_paused = after.condition(PAUSED), before.condition(PAUSED)
    if paused is not None and was_paused is None:
        yield EmitEvent("Normal", "Paused", paused.message)
    elif paused is None and was_paused is not None and not after.has_ended:
        yield EmitEvent("Normal", "Resumed", f"Pipeline {after.pipeline} is not paused any more")
    outdated, known = after.condition(OUTDATED), before.condition(OUTDATED)
    if outdated is not None and (known is None or known.reason != outdated.reason):
        yield EmitEvent("Warning", outdated.reason, outdated.message)


def _proposal(environment: str, before: EnvironmentStatus, after: EnvironmentStatus) -> Iterator[EmitEvent]:
    if after.pr_url is None:
        return
    if before.pr_url != after.pr_url:
        yield EmitEvent("Normal", "PullRequestOpened", f"{environment}: {after.pr_url}")
    if before.promoted_at is None and after.promoted_at is not None:
        commit = f" as {after.commit[:_SHORT_COMMIT]}" if after.commit else ""
        yield EmitEvent("Normal", "PullRequestMerged", f"{environment}: {after.pr_url} was merged{commit}")


def _hold(environment: str, before: EnvironmentStatus, after: EnvironmentStatus) -> Iterator[EmitEvent]:
    if after.held is not None and before.held is None:
        yield EmitEvent("Normal", "Held", f"{environment}: {after.held}")
    elif after.held is None and before.held is not None and after.state != "Failed":
        yield EmitEvent("Normal", "Released", f"{environment}: nothing holds it any more")


def _verification(
    environment: str, before: EnvironmentStatus, after: EnvironmentStatus, version: str | None
) -> Iterator[EmitEvent]:
    if _turned(before, after, "Verified"):
        approvers = after.evidence.approved_by if after.evidence is not None else ()
        approved = f", approved by {', '.join(approvers)}" if approvers else ""
        yield EmitEvent("Normal", "EnvironmentVerified", f"{environment} runs {version}{approved}")


def _losses(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Tell which environments newer Bundles have taken over."""
    taken: dict[str, list[str]] = {}
    for environment, entry in after.environments.items():
        known = before.environments.get(environment, _UNSEEN)
        if is_displaced(entry) and known.displaced_by != entry.displaced_by:
            taken.setdefault(str(entry.displaced_by), []).append(environment)
    for newer, environments in taken.items():
        yield EmitEvent("Normal", "TakenOver", f"superseded by {newer} in {', '.join(environments)}")


def _turned(before: EnvironmentStatus, after: EnvironmentStatus, state: str) -> bool:
    return after.state == state != before.state


def _ready_turned(before: BundleStatus, after: BundleStatus, reason: str) -> bool:
    old, new = before.condition("Ready"), after.condition("Ready")
    return new is not None and new.reason == reason and (old is None or old.reason != reason)
