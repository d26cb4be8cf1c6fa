"""Wait for a delivery controller beside the proof of an environment (`delivery.delegate`).

The object of the delivery controller is judged by its own adapter, as with that `health.type`, and both verdicts must
be healthy. The phase of the object is noted only if it is a known phase of its tool, because the text of a status is
chosen by its writer, who may be anyone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.health_adapters import NO_DELEGATE
from kardinal_agent.health.fields import latest, text
from kardinal_agent.health.verdict import Adapter, Verdict, WatchedObjects

__all__ = ["Delegated", "delegate_of", "delegated", "together"]


@dataclass(frozen=True, slots=True)
class Delegated:
    """A delivery controller with the phase that it reports."""

    to: str
    status: str


def delegate_of(step: PromotionStep) -> str | None:
    """Return the `health.type` of the delivery controller that a promotion waits for; None without one."""
    delegate = step.spec.delivery.delegate
    return delegate if delegate != NO_DELEGATE else None


def delegated(step: PromotionStep, adapter: Adapter, objects: WatchedObjects) -> Delegated:
    """Return the phase of the Rollout or Canary; `NotFound` without an object, `Unknown` for an unknown phase."""
    found = [objects.get(each.kind, each.namespace, each.name or "") for each in adapter.watches(step)]
    if not found or found[0] is None:
        return Delegated(adapter.name, "NotFound")
    phase = text(found[0], "status", "phase")
    return Delegated(adapter.name, phase if phase in adapter.phases else "Unknown")


def together(proof: Verdict, delegate: Verdict) -> Verdict:
    """Return the joined verdict; a failure of the delegate has priority, because it causes the other failures."""
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
