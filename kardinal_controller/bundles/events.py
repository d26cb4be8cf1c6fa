"""Kubernetes Events, log lines and counters of a change of a Bundle's status (pure).

They let `kubectl describe bundle` tell what happened to a Bundle. Each follows from a difference between the status
before a write and the status that was written, so that it is told once: a run that changes nothing tells nothing, and
neither does a process that starts again. What gates answered is told by their own reconciler,
`kardinal_controller.gates.events`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import BundleStatus, EnvironmentStatus, Rollback
from kardinal.promotion.api.names import ANNOTATION_SOURCE, WAITING_FOR_GRAPH
from kardinal.promotion.api.promotion_step import NO_AGENT
from kardinal.promotion.translation.rollback import AUTOMATIC
from kardinal_controller.bundles.notices import GRAPH_REFUSED, OUTDATED, PAUSED
from kardinal_controller.bundles.progress import is_displaced

__all__ = ["CountBundle", "CountRollback", "Effect", "EmitEvent", "LogChange", "effects", "story"]

_EXPECTED = frozenset([WAITING_FOR_GRAPH, "Promoting", "Verified", "Superseded"])
"""Reasons that ask for no action; an Event with another one is a warning."""

_UNSEEN = EnvironmentStatus(state="Pending")
_SHORT_COMMIT = 12


@dataclass(frozen=True, slots=True)
class EmitEvent:
    """Emit a Kubernetes Event about the Bundle."""

    type: Literal["Normal", "Warning"]
    reason: str
    note: str


@dataclass(frozen=True, slots=True)
class CountBundle:
    """Count a Bundle that is seen for the first time."""

    pipeline: str
    source: str


@dataclass(frozen=True, slots=True)
class CountRollback:
    """Count a rollback of an environment that has begun, by what asked for it."""

    environment: str
    trigger: str


@dataclass(frozen=True, slots=True)
class LogChange:
    """A line of the log: `event` and its fields, such as `environment` and `state`."""

    event: str
    fields: Mapping[str, str | None]


Effect = EmitEvent | CountBundle | CountRollback | LogChange


def effects(bundle: Bundle, *, before: BundleStatus, after: BundleStatus) -> Sequence[Effect]:
    """Return the log lines, Events and counters for a status that changes from `before` to `after`."""
    found: list[Effect] = [*_log_lines(before, after), *_answers(before, after)]
    found += story(bundle.metadata.name, before, after)
    found += _events(before, after)
    found += _rollbacks(before, after)
    if before.sequence is None and after.sequence is not None:
        source = bundle.metadata.annotations.get(ANNOTATION_SOURCE, "kubectl")
        found.append(CountBundle(after.pipeline or "", source))
    rollback = bundle.spec.intent.rollback
    if rollback is not None and before.graph_ref is None and after.graph_ref is not None:
        found += (CountRollback(name, _trigger(bundle, rollback)) for name in rollback.environments)
    return found


def _log_lines(before: BundleStatus, after: BundleStatus) -> Iterator[LogChange]:
    """Yield a line for another phase, and for each environment with another state."""
    if after.phase != before.phase:
        ready = after.condition("Ready")
        reason = f"{ready.reason}: {ready.message}" if ready is not None else None
        yield LogChange("Bundle changed its phase", {"phase": after.phase, "before": before.phase, "reason": reason})
    for name, entry in after.environments.items():
        known = before.environments.get(name)
        state = known.state if known is not None else None
        if entry.state != state:
            fields = {"environment": name, "state": entry.state, "before": state, "reason": entry.message}
            yield LogChange("Bundle changed its state in an environment", fields)


def _trigger(bundle: Bundle, rollback: Rollback) -> str:
    if bundle.metadata.annotations.get(ANNOTATION_SOURCE) == AUTOMATIC:
        return "automatic"
    return "emergency" if rollback.emergency else "manual"


def _answers(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each request that was answered."""
    seen = {request.id for request in before.requests or ()}
    for request in after.requests or ():
        if request.id in seen:
            continue
        what = f"{request.action} {request.environment}" if request.environment else request.action
        if request.state == "Accepted":
            yield EmitEvent("Normal", "RequestAccepted", f"{what} (request {request.id})")
        else:
            yield EmitEvent("Warning", "RequestRefused", f"{what} (request {request.id}): {request.message}")


def _rollbacks(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each environment that is rolled back from now on."""
    failed = " and ".join(name for name, entry in after.environments.items() if entry.state == "Failed")
    for name, entry in after.environments.items():
        known = before.environments.get(name)
        if entry.rolled_back_by and (known is None or known.rolled_back_by is None):
            what = "it" if entry.state == "Failed" else name
            cause = name if entry.state == "Failed" else failed
            yield EmitEvent(
                "Warning", "RollingBack", f"{cause} failed, and Bundle {entry.rolled_back_by} rolls {what} back"
            )


def _events(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each condition that has another status or reason than before.

    A Bundle that waits for a newer one gets none: a backlog would bury the Events of the one that starts.
    """
    for name in ("Ready", "Warning", "MergedOutOfBand", "TagMoved", NO_AGENT, GRAPH_REFUSED):
        old = before.condition(name)
        new = after.condition(name)
        if new is None or new.reason == "Waiting":
            continue
        if old is None or (old.status, old.reason) != (new.status, new.reason):
            yield EmitEvent("Normal" if new.reason in _EXPECTED else "Warning", new.reason, new.message)


def story(name: str, before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield the Events of a change of the status of the Bundle `name`, apart from those of its condition Ready."""
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
    """Yield Events for the begin and the end of a pause, and for a Pipeline or gates that differ from the Graph."""
    paused = after.condition(PAUSED)
    was_paused = before.condition(PAUSED)
    if paused is not None and was_paused is None:
        yield EmitEvent("Normal", "Paused", paused.message)
    elif paused is None and was_paused is not None and not after.has_ended:
        yield EmitEvent("Normal", "Resumed", f"Pipeline {after.pipeline} is not paused any more")
    outdated = after.condition(OUTDATED)
    known = before.condition(OUTDATED)
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
    old = before.condition("Ready")
    new = after.condition("Ready")
    return new is not None and new.reason == reason and (old is None or old.reason != reason)
