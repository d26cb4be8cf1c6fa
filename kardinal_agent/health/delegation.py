"""Wait for a delivery controller beside the proof of an environment (`delivery.delegate`).

The controller's object is judged by its own adapter, as with that `health.type`, and both must be healthy. What it
reports is noted in words of its tool that are known: who writes the object's status chooses the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kardinal.api import PromotionStep
from kardinal.steps.health_fields import NO_DELEGATE
from kardinal_agent.health.fields import latest, text
from kardinal_agent.health.verdict import Adapter, Objects, Verdict

__all__ = ["Delegated", "delegate_of", "delegated", "together"]

_PHASES: Final[Mapping[str, frozenset[str]]] = {
    "argoRollouts": frozenset(["Degraded", "Healthy", "Paused", "Progressing"]),
    "flagger": frozenset(
        [
            *("Failed", "Finalising", "Initialized", "Initializing", "Progressing", "Promoting"),
            *("Succeeded", "Terminated", "Terminating", "Waiting", "WaitingPromotion"),
        ]
    ),
}
"""The phases that each controller reports."""


@dataclass(frozen=True, slots=True)
class Delegated:
    """The controller that is waited for, and the state that it reports."""

    to: str
    status: str


def delegate_of(step: PromotionStep) -> str | None:
    """Return the `health.type` of the controller that a promotion waits for."""
    delegate = step.spec.delivery.delegate
    return delegate if delegate != NO_DELEGATE else None


def delegated(step: PromotionStep, adapter: Adapter, objects: Objects) -> Delegated:
    """Return what the controller reports; `NotFound` without an object, `Unknown` in words not its own."""
    found = [objects.get(each.kind, each.namespace, each.name or "") for each in adapter.watches(step)]
    if not found or found[0] is None:
        return Delegated(adapter.name, "NotFound")
    phase = text(found[0], "status", "phase")
    return Delegated(adapter.name, phase if phase in _PHASES.get(adapter.name, ()) else "Unknown")


def together(proof: Verdict, delegate: Verdict) -> Verdict:
    """Return the verdict on both: a failure of the delegate comes first, because it is the cause of others."""
    negative = proof.negative or delegate.negative
    for verdict in (delegate, proof):
        if verdict.state == "failed":
            return replace(verdict, negative=negative)
    if delegate.state == "healthy":
        return proof
    if proof.state == "healthy":
        return delegate
    told = proof.details or delegate.details
    return replace(
        proof,
        message=f"{proof.message}; {delegate.message}",
        details=f"{proof.details or proof.message}; {delegate.details or delegate.message}" if told else "",
        since=latest([proof.since, delegate.since]),
        negative=negative,
    )
