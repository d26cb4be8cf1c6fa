"""The page of a Bundle: its origin, its evidence in each environment, and what is still to come."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kardinal.models.base import Condition
from kardinal.objects.image_reference import ImageReferenceError
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.image import promoted_image
from kardinal.promotion.views.missing import no_bundle
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.states import UNDER_WAY
from kardinal_controller.ui.documents.cards import bundle_card
from kardinal_controller.ui.documents.evidence import evidence_of
from kardinal_controller.ui.documents.facts import PipelineFacts, facts_of
from kardinal_controller.ui.documents.sentences import environment_sentence
from kardinal_controller.ui.model import BundleDocument, ConditionLine

__all__ = ["bundle_document", "condition_line"]

_AHEAD = ("Waiting", "Blocked", "Pending", "Promoting", "WaitingForMerge", "HealthChecking")


def bundle_document(objects: PipelineObjects, *, now: datetime) -> BundleDocument:
    """Return the page of the Bundle that is shown. Raises `NotThere` for a Pipeline without a Bundle."""
    facts = facts_of(objects, now=now)
    bundle = objects.bundle
    if bundle is None:
        raise no_bundle(facts.pipeline)
    evidence = {name: evidence_of(facts, name) for name in facts.upstreams}
    return BundleDocument(
        card=bundle_card(bundle, objects),
        type=bundle.spec.type,
        intent=_intent(bundle),
        artifacts=dict(_artifacts(bundle)),
        environments={name: found for name, found in evidence.items() if found is not None},
        ahead=list(_ahead(facts)),
        conditions=[condition_line(condition) for condition in bundle.status.conditions],
    )


def condition_line(condition: Condition) -> ConditionLine:
    """Return a condition of an object."""
    return ConditionLine(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        since=condition.last_transition_time,
    )


def _intent(bundle: Bundle) -> str:
    """Return how far a Bundle goes, in the words of its spec: `target: staging; skip: load-test`."""
    intent = bundle.spec.intent
    parts = []
    if intent.rollback is not None:
        environments = ", ".join(intent.rollback.environments)
        parts.append(f"rollback: {environments} to {intent.rollback.restores.name}")
    if intent.target is not None:
        parts.append(f"target: {intent.target}")
    if intent.skip:
        parts.append(f"skip: {', '.join(intent.skip)}")
    for request in intent.requests or ():
        by = f" by {request.by}" if request.by else ""
        parts.append(f"{request.action}: {request.environment or 'all'}{by}")
    return "; ".join(parts)


def _artifacts(bundle: Bundle) -> Iterator[tuple[str, str]]:
    """Yield the version of each artifact: the digest, also one that a tag had when the Bundle started; else the tag."""
    artifacts = bundle.spec.artifacts
    resolved = {found.reference: found.digest for found in bundle.status.artifacts or () if found.digest}
    for image in artifacts.images:
        try:
            reference = promoted_image(image)
        except ImageReferenceError:
            yield image.reference, image.digest or ""
            continue
        tagged = f"{reference.canonical}:{reference.tag}" if reference.tag else reference.canonical
        yield tagged, reference.digest or resolved.get(image.reference) or reference.tag or ""
    for chart in artifacts.charts:
        yield f"{chart.repository} {chart.name}", chart.digest or chart.version
    if artifacts.git_commit is not None:
        yield artifacts.git_commit.repository, artifacts.git_commit.sha


def _ahead(facts: PipelineFacts) -> Iterator[str]:
    """Yield the sentence of each environment that the Bundle has still to reach."""
    if facts.view.phase not in UNDER_WAY:
        return
    for name in facts.upstreams:
        sentence = environment_sentence(facts, name)
        if sentence is not None and facts.states[name].state in _AHEAD:
            yield f"{name}: {sentence.text}"
