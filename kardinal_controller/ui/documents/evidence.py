"""The evidence of a Bundle in an environment, while it is promoted and after its PromotionStep is gone."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import EnvironmentStatus
from kardinal.promotion.api.evidence import Evidence
from kardinal.promotion.api.health_adapters import NO_DELEGATE
from kardinal.promotion.api.promotion_step import PromotionStepStatus
from kardinal.promotion.views.gates import recorded_gates
from kardinal_controller.ui.documents.cards import drawn_gate
from kardinal_controller.ui.documents.facts import PipelineFacts
from kardinal_controller.ui.documents.links import commit_link, pull_request_link
from kardinal_controller.ui.documents.tones import environment_mark
from kardinal_controller.ui.model import Approver, DrawnGate, EnvironmentEvidence

__all__ = ["evidence_of"]

_Found = EnvironmentStatus | PromotionStepStatus


def evidence_of(facts: PipelineFacts, environment: str) -> EnvironmentEvidence | None:
    """Return the evidence of the Bundle that is shown; None where its promotion has not begun."""
    bundle = facts.bundle
    state = facts.states[environment]
    entry = bundle.status.environments.get(environment) if bundle is not None else None
    # A recorded verification stands although its PromotionStep is made again, and then `state` has no step.
    found: _Found | None = state.step.status if state.step is not None else entry
    if bundle is None or found is None or found.started_at is None:
        return None
    evidence = found.evidence or Evidence()
    return EnvironmentEvidence(
        environment=environment,
        state=environment_mark(state),
        commit=commit_link(facts.objects.pipeline.spec.git, found.commit),
        pull_request=pull_request_link(found.pr_url),
        people=list(_people(found, evidence)),
        gates=_gates(facts, bundle, environment, entry),
        due_at=_due_at(facts, bundle, environment),
        started_at=found.started_at,
        proposed_at=_proposed_at(found, evidence),
        landed_at=found.promoted_at,
        verified_at=found.verified_at,
        delegate=_delegate(facts, environment, found),
        metrics={name: f"{value:g}" for name, value in evidence.metrics.items()},
        health=state.message if found.verified_at is not None else "",
    )


def _gates(facts: PipelineFacts, bundle: Bundle, environment: str, entry: EnvironmentStatus | None) -> list[DrawnGate]:
    """Return the gates with the answers at the end of the promotion, else with their present answers."""
    if entry is not None and entry.evidence is not None:
        return [drawn_gate(gate) for gate in recorded_gates(bundle, [environment])]
    return [drawn_gate(gate) for gate in facts.gates[environment]]


def _people(found: _Found, evidence: Evidence) -> Iterator[Approver]:
    for name in evidence.approved_by:
        yield Approver(name=name, did="approved")
    if evidence.merged_by:
        at = found.merged_at if isinstance(found, PromotionStepStatus) else None
        yield Approver(name=evidence.merged_by, did="merged", at=at)


def _due_at(facts: PipelineFacts, bundle: Bundle, environment: str) -> datetime | None:
    """Return the time since which only gates kept the Bundle back; None while an environment before it is missing."""
    moments = [bundle.metadata.creation_timestamp]
    for upstream in facts.upstreams[environment]:
        state = facts.states[upstream]
        if state.state in ("Skipped", "NotTargeted"):
            continue
        entry = bundle.status.environments.get(upstream)
        verified = state.step.status.verified_at if state.step is not None else entry.verified_at if entry else None
        moments.append(verified)
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def _proposed_at(found: _Found, evidence: Evidence) -> datetime | None:
    """Return the time at which the pull request was opened; None without one."""
    durations = evidence.durations
    if found.started_at is None or durations is None or durations.waiting_for_merge is None:
        return None
    return found.started_at + durations.promoting if durations.promoting is not None else None


def _delegate(facts: PipelineFacts, environment: str, found: _Found) -> str:
    if isinstance(found, PromotionStepStatus):
        return " ".join(filter(None, (found.delegated_to, found.delegated_status)))
    spec = next((each for each in facts.objects.pipeline.spec.environments if each.name == environment), None)
    return spec.delivery.delegate if spec is not None and spec.delivery.delegate != NO_DELEGATE else ""
