"""Kubernetes Events and counters of a change of a Bundle's status. Pure.

Both follow from the status before and the status after, so that each change is told once however often the reconciler
runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kardinal.api import Bundle
from kardinal.api.bundle import BundleStatus, Rollback
from kardinal.api.names import ANNOTATION_SOURCE
from kardinal.api.promotion_step import NO_AGENT
from kardinal.translation.rollback import AUTOMATIC
from kardinal_controller.bundles.story import EmitEvent, story

__all__ = ["CountBundle", "CountRollback", "Effect", "EmitEvent", "effects"]

_EXPECTED = frozenset(["Promoting", "Verified", "Superseded"])
"""Reasons that ask for no action; an Event with another one is a warning."""


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


Effect = EmitEvent | CountBundle | CountRollback


def effects(bundle: Bundle, *, before: BundleStatus, after: BundleStatus) -> Sequence[Effect]:
    """Return what to emit and to count now that `after` takes the place of `before`."""
    found: list[Effect] = list(_answers(before, after))
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


def _trigger(bundle: Bundle, rollback: Rollback) -> str:
    if bundle.metadata.annotations.get(ANNOTATION_SOURCE) == AUTOMATIC:
        return "automatic"
    return "emergency" if rollback.emergency else "manual"


def _answers(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each request that was decided about."""
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
    for name, entry in after.environments.items():
        known = before.environments.get(name)
        if entry.rolled_back_by and (known is None or known.rolled_back_by is None):
            yield EmitEvent("Warning", "RollingBack", f"{name} failed, and Bundle {entry.rolled_back_by} rolls it back")


def _events(before: BundleStatus, after: BundleStatus) -> Iterator[EmitEvent]:
    """Yield an Event for each condition that has another status or reason than before.

    A Bundle that waits for a newer one gets none: a backlog would bury the Events of the one that starts.
    """
    for name in ("Ready", "Warning", "MergedOutOfBand", "TagMoved", NO_AGENT):
        old, new = before.condition(name), after.condition(name)
        if new is None or new.reason == "Waiting":
            continue
        if old is None or (old.status, old.reason) != (new.status, new.reason):
            yield EmitEvent("Normal" if new.reason in _EXPECTED else "Warning", new.reason, new.message)
