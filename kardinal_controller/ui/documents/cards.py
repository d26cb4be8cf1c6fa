"""The cards that several documents have: an environment, a gate and a Bundle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import Provenance
from kardinal.promotion.api.image import bundle_title, bundle_versions
from kardinal.promotion.policy.soak import Soak
from kardinal.promotion.views.environments import promotion_states, recorded_states
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.states import WITHOUT_STEP, phase_of
from kardinal.promotion.views.status import running
from kardinal_controller.ui.documents.facts import PipelineFacts
from kardinal_controller.ui.documents.links import ci_run_link, pull_request_link, source_link
from kardinal_controller.ui.documents.tones import environment_mark, health_mark, mark
from kardinal_controller.ui.model import BundleCard, DrawnGate, EnvironmentCard, GateSoak, StateMark

__all__ = ["bundle_card", "bundle_cards", "drawn_gate", "environment_card", "environment_cards", "people_of"]

_STILL = ("Verified", "Skipped", "NotTargeted", "NotReached", "Superseded")
"""States of an environment to which nothing is on its way."""

_EPOCH = datetime.fromtimestamp(0, UTC)


def environment_cards(facts: PipelineFacts) -> dict[str, EnvironmentCard]:
    """Return the card of each environment, in the order of promotion."""
    return {name: environment_card(facts, name) for name in facts.upstreams}


def environment_card(facts: PipelineFacts, environment: str) -> EnvironmentCard:
    """Return the card of an environment for the Bundle that is shown."""
    state = facts.states[environment]
    found = facts.running.get(environment)
    version = bundle_title(found[1].spec.artifacts) if found is not None else ""
    bundle = facts.bundle
    incoming = None
    if bundle is not None and state.state not in _STILL:
        title = bundle_title(bundle.spec.artifacts)
        incoming = title if title != version else None
    spec = next((each for each in facts.objects.pipeline.spec.environments if each.name == environment), None)
    step = state.step
    pull = step.status.pull_request if step is not None and not step.status.has_ended else None
    return EnvironmentCard(
        name=environment,
        order=list(facts.upstreams).index(environment),
        upstreams=list(facts.upstreams[environment]),
        state=environment_mark(state),
        version=version,
        incoming=incoming,
        health=health_mark(facts.running_state(environment)),
        behind=facts.behind(environment),
        since=state.since or (found[0] if found is not None else None),
        shard=step.spec.shard if step is not None else spec.shard if spec is not None else None,
        no_agent_since=facts.no_agent_since(environment),
        pull_request=pull_request_link(pull.url, pull.number) if pull is not None else None,
    )


def drawn_gate(gate: GateLine, facts: PipelineFacts | None = None) -> DrawnGate:
    """Return a gate for the DAG; one that is only recorded in evidence comes without `facts`, and has no soak."""
    soak = facts.soak(gate) if facts is not None else None
    scope: Literal["org", "team"] = "org" if gate.scope == "org" else "team"
    return DrawnGate(
        environment=gate.environment,
        namespace=gate.namespace,
        name=gate.name,
        scope=scope,
        answer=mark("Gate", gate.answer),
        detail=gate.detail,
        seen_at=gate.seen_at,
        opens_at=gate.opens_at,
        soak=_gate_soak(soak, now=facts.now) if soak is not None and facts is not None else None,
    )


def bundle_card(bundle: Bundle, objects: PipelineObjects) -> BundleCard:
    """Return the card of one Bundle of a Pipeline."""
    return next(iter(bundle_cards(objects, [bundle]).values()))


def bundle_cards(objects: PipelineObjects, bundles: Sequence[Bundle]) -> dict[str, BundleCard]:
    """Return the cards of some Bundles of a Pipeline by name, oldest first.

    The states of the Bundle that is shown are those of its PromotionSteps, as in the DAG; those of others are in their
    statuses.
    """
    states, _ = promotion_states(objects)
    shown = {state.name: environment_mark(state) for state in states if state.state not in WITHOUT_STEP}
    runs: dict[str, list[str]] = {}
    for environment, (_, found) in running(objects, states).items():
        runs.setdefault(found.metadata.name, []).append(environment)
    orders = {bundle.metadata.name: order for order, bundle in enumerate(reversed(objects.bundles))}
    order_of_environments = [state.name for state in states]
    cards = {}
    for bundle in sorted(bundles, key=lambda each: orders.get(each.metadata.name, 0)):
        name = bundle.metadata.name
        is_shown = objects.bundle is not None and objects.bundle.metadata.name == name
        segments = shown if is_shown else _segments(bundle, order_of_environments)
        cards[name] = _card(bundle, objects, order=orders.get(name, 0), segments=segments, runs_in=runs.get(name, []))
    return cards


def people_of(bundles: Iterable[Bundle]) -> list[str]:
    """Return the authors of Bundles, and the people who approved or merged their pull requests, sorted."""
    found: set[str] = set()
    for bundle in bundles:
        author = bundle.spec.provenance.author if bundle.spec.provenance is not None else None
        found.update([author] if author else [])
        for entry in bundle.status.environments.values():
            if entry.evidence is not None:
                found.update(entry.evidence.approved_by)
                found.update([entry.evidence.merged_by] if entry.evidence.merged_by else [])
    return sorted(found)


def _gate_soak(soak: Soak, *, now: datetime) -> GateSoak:
    if not soak.is_known:
        return GateSoak(unknown=soak.unknown)
    shortest = min(soak.times, key=lambda time: time.at(now))
    ends = [time.at(now) for time in soak.times if time.since is None or time.until is not None]
    seconds = int(min(ends).total_seconds()) if ends else None
    grows = shortest.since is not None and shortest.until is None
    return GateSoak(since=now - shortest.at(now) if grows else None, seconds=seconds)


def _segments(bundle: Bundle, order: Sequence[str]) -> dict[str, StateMark]:
    states = recorded_states(bundle)
    names = [*(name for name in order if name in states), *(name for name in states if name not in order)]
    return {name: environment_mark(states[name]) for name in names}


def _card(
    bundle: Bundle,
    objects: PipelineObjects,
    *,
    order: int,
    segments: Mapping[str, StateMark],
    runs_in: Sequence[str],
) -> BundleCard:
    ready = bundle.status.condition("Ready")
    provenance = bundle.spec.provenance or Provenance()
    return BundleCard(
        namespace=bundle.metadata.namespace,
        name=bundle.metadata.name,
        pipeline=objects.pipeline.metadata.name,
        order=order,
        versions=bundle_versions(bundle.spec.artifacts),
        author=provenance.author or "",
        commit=source_link(bundle),
        ci_run=ci_run_link(bundle),
        created=bundle.metadata.creation_timestamp or _EPOCH,
        phase=mark("Bundle", phase_of(bundle)),
        message=ready.message if ready is not None else "",
        segments=dict(segments),
        runs_in=list(runs_in),
    )
