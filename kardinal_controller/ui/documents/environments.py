"""The drawer of an environment: its sequence of steps, its evidence and its past."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from kardinal.objects.text import cut
from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.promotion_step import StepProgress
from kardinal.promotion.views.environments import EnvironmentState, recorded_state
from kardinal.promotion.views.missing import unknown_environment
from kardinal.promotion.views.promotions import PromotionAttempt, promotions
from kardinal.promotion.views.reading import PipelineObjects
from kardinal_controller.ui.documents.cards import environment_card
from kardinal_controller.ui.documents.evidence import evidence_of
from kardinal_controller.ui.documents.facts import PipelineFacts, facts_of
from kardinal_controller.ui.documents.links import application_link, ci_run_link, commit_link, pull_request_link
from kardinal_controller.ui.documents.sentences import environment_sentence
from kardinal_controller.ui.documents.tones import recorded_mark
from kardinal_controller.ui.model import EnvironmentDocument, Link, PastPromotion, StepLine

__all__ = ["environment_document"]

_HISTORY = 50
"""The most past promotions in the drawer of an environment."""
_DIFF = 64 << 10
"""The most characters of a diff, as in the status of a PromotionStep."""
_CONTINUES: Final = ("Pending", "Promoting", "WaitingForMerge", "HealthChecking")


def environment_document(
    objects: PipelineObjects, environment: str, *, now: datetime, argocd: str = ""
) -> EnvironmentDocument:
    """Return the drawer of an environment for the Bundle that is shown. `argocd` is the address of Argo CD, if known.

    Raises `NotThere` if neither the Pipeline nor a Bundle has such an environment.
    """
    facts = facts_of(objects, now=now)
    if environment not in facts.states:
        raise unknown_environment(facts.pipeline, environment, facts.states)
    state = facts.states[environment]
    step = state.step
    status = step.status if step is not None else None
    bundle = objects.bundle
    entry = bundle.status.environments.get(environment) if bundle is not None else None
    pull = status.pull_request if status is not None else None
    pr_url = pull.url if pull is not None else entry.pr_url if entry is not None else None
    pull_request = pull_request_link(pr_url, pull.number if pull is not None else None)
    retry = status.retry if status is not None and not status.has_ended else None
    return EnvironmentDocument(
        namespace=objects.pipeline.metadata.namespace,
        pipeline=facts.pipeline,
        bundle=bundle.metadata.name if bundle is not None else None,
        card=environment_card(facts, environment),
        why=environment_sentence(facts, environment),
        steps={str(index): line for index, line in enumerate(_steps(step), start=1)} if step is not None else {},
        attempt=(status.attempt if status is not None else entry.attempt if entry is not None else None) or 1,
        retries=retry.attempts if retry is not None else 0,
        next_try=retry.next_at if retry is not None else None,
        error=retry.last_error if retry is not None else state.message if state.state == "Failed" else None,
        commit=commit_link(
            objects.pipeline.spec.git,
            status.commit if status is not None else entry.commit if entry is not None else None,
        ),
        pull_request=pull_request,
        diff=cut(status.diff or "", _DIFF) if status is not None else "",
        evidence=evidence_of(facts, environment),
        history=list(_history(facts, environment)),
        links=list(_links(facts, state, pull_request, argocd)),
        commands=list(_commands(facts, state)),
    )


def _steps(step: PromotionStep) -> Iterator[StepLine]:
    """Yield the sequence of a PromotionStep; steps that it has not come to are Pending."""
    done = step.status.steps
    for index, spec in enumerate(step.spec.steps):
        progress = done[index] if index < len(done) else None
        yield StepLine(uses=spec.uses, state="Pending", message="") if progress is None else _line(progress)


def _line(progress: StepProgress) -> StepLine:
    return StepLine(
        uses=progress.uses,
        state=progress.state,
        message=progress.message or "",
        started_at=progress.started_at,
        finished_at=progress.finished_at,
    )


def _history(facts: PipelineFacts, environment: str) -> Iterator[PastPromotion]:
    runs = facts.running.get(environment)
    current = runs[1].metadata.name if runs is not None else ""
    for promotion in promotions(facts.objects.bundles, environment=environment)[:_HISTORY]:
        yield _past(facts, environment, promotion, current)


def _past(facts: PipelineFacts, environment: str, promotion: PromotionAttempt, current: str) -> PastPromotion:
    name = promotion.bundle.metadata.name
    can_return = promotion.record.verified_at is not None and name != current
    return PastPromotion(
        bundle=name,
        versions=promotion.version,
        state=recorded_mark(recorded_state(promotion.bundle, promotion.record)),
        at=promotion.at,
        commit=commit_link(facts.objects.pipeline.spec.git, promotion.record.commit),
        rollback=f"kardinal rollback {facts.pipeline} --env {environment} --to {name}" if can_return else "",
    )


def _links(facts: PipelineFacts, state: EnvironmentState, pull_request: Link | None, argocd: str) -> Iterator[Link]:
    """Yield the pages of other programs; the object of a delivery tool whose page is not known has no URL."""
    health = state.step.status.health if state.step is not None else None
    if health is not None and health.kind is not None and health.name is not None:
        if health.kind == "Application" and health.namespace is not None:
            yield application_link(argocd, health.namespace, health.name)
        else:
            yield Link(text=f"{health.kind} {health.namespace}/{health.name}" if health.namespace else health.name)
    run = ci_run_link(facts.bundle) if facts.bundle is not None else None
    for link in (pull_request, run):
        if link is not None and link.url is not None:
            yield link


def _commands(facts: PipelineFacts, state: EnvironmentState) -> Iterator[str]:
    name = facts.pipeline
    bundle = facts.bundle
    if bundle is not None:
        yield f"kardinal explain {name} --env {state.name}"
    if bundle is not None and state.state == "Failed":
        yield f"kardinal retry {bundle.metadata.name} --env {state.name}"
    if bundle is not None and state.state == "NotTargeted":
        yield f"kardinal promote {name} --env {state.name} --bundle {bundle.metadata.name}"
    if bundle is not None and state.state not in _CONTINUES:
        yield f"kardinal plan {name} --env {state.name}"
    yield f"kardinal history {name} --env {state.name}"
