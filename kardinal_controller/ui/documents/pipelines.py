"""The page of a Pipeline: the timeline of its Bundles, and the DAG of the one that is selected."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kardinal.promotion.views.environments import EnvironmentState
from kardinal.promotion.views.reading import PipelineObjects
from kardinal_controller.ui.documents.cards import bundle_cards, drawn_gate, environment_cards
from kardinal_controller.ui.documents.facts import PipelineFacts, facts_of
from kardinal_controller.ui.documents.links import commit_link, repository_link
from kardinal_controller.ui.documents.overview import branch_of, pause_message
from kardinal_controller.ui.documents.sentences import environment_sentence, position
from kardinal_controller.ui.documents.tones import environment_mark, mark
from kardinal_controller.ui.model import (
    DrawnEnvironment,
    DrawnGate,
    Edge,
    EnvironmentCard,
    PageNotice,
    PipelineDocument,
    StepPosition,
)

__all__ = ["pipeline_document"]

_TIMELINE = 100
"""The most Bundles on the timeline."""

_OFF_ROUTE = ("Skipped", "NotTargeted")


def pipeline_document(objects: PipelineObjects, *, now: datetime) -> PipelineDocument:
    """Return the page of a Pipeline with the Bundle that is shown."""
    facts = facts_of(objects, now=now)
    metadata = objects.pipeline.metadata
    git = objects.pipeline.spec.git
    kept = list(objects.bundles[:_TIMELINE])
    if objects.bundle is not None and objects.bundle not in kept:
        kept[-1] = objects.bundle
    return PipelineDocument(
        namespace=metadata.namespace,
        name=metadata.name,
        repository=repository_link(git),
        branch=branch_of(git),
        paused=pause_message(facts),
        notices=dict(_notices(facts)),
        bundles=bundle_cards(objects, kept),
        more_bundles=len(objects.bundles) - len(kept),
        shown=objects.bundle.metadata.name if objects.bundle is not None else None,
        nodes=dict(_nodes(facts)),
        edges={f"{edge.source}→{edge.target}": edge for edge in _edges(facts)},
    )


def _notices(facts: PipelineFacts) -> Iterator[tuple[str, PageNotice]]:
    freeze = facts.objects.freeze
    for hold in facts.view.holds:
        if not hold.environment:
            since = freeze.metadata.creation_timestamp if freeze is not None else None
            yield (
                "paused",
                PageNotice(tone="you", text=f"Paused: {hold.message}", command=hold.command, since=since),
            )
        elif hold.kind == "hold":
            text = f"{hold.environment}: {hold.message}"
            yield (
                f"hold/{hold.environment}",
                PageNotice(tone="you", text=text, detail=f"To {hold.purpose}:", command=hold.command),
            )
    for index, note in enumerate(facts.view.notes):
        yield f"note/{index}", PageNotice(tone="warn", text=note)


def _nodes(facts: PipelineFacts) -> Iterator[tuple[str, DrawnEnvironment | DrawnGate]]:
    for name, card in environment_cards(facts).items():
        for gate in facts.gates[name]:
            yield _gate_key(name, gate.namespace, gate.name), drawn_gate(gate, facts)
        yield _environment_key(name), _drawn(facts, card)


def _drawn(facts: PipelineFacts, card: EnvironmentCard) -> DrawnEnvironment:
    state = facts.states[card.name]
    bundle = facts.bundle
    entry = bundle.status.environments.get(card.name) if bundle is not None else None
    step = state.step
    commit = (step.status.commit if step is not None else None) or (entry.commit if entry is not None else None)
    return DrawnEnvironment(
        card=card,
        why=environment_sentence(facts, card.name),
        progress=_progress(state),
        commit=commit_link(facts.objects.pipeline.spec.git, commit),
        health=state.message if state.state in ("HealthChecking", "Verified") else "",
    )


def _progress(state: EnvironmentState) -> StepPosition | None:
    found = position(state)
    if found is None:
        return None
    uses, index, length = found
    steps = state.step.status.steps if state.step is not None else ()
    message = steps[index - 1].message if index <= len(steps) else None
    return StepPosition(uses=uses, index=index, of=length, message=message or state.message)


def _edges(facts: PipelineFacts) -> Iterator[Edge]:
    """Yield the edges: from what is before an environment to each of its gates and from those to it, else directly."""
    for name, upstreams in facts.upstreams.items():
        gates = facts.gates[name]
        target = _environment_key(name)
        keys = [_gate_key(name, gate.namespace, gate.name) for gate in gates]
        for upstream in upstreams:
            yield from (_from_environment(facts, upstream, key) for key in (keys or [target]))
        for gate, key in zip(gates, keys, strict=True):
            is_open = gate.answer == "PASS"
            yield Edge(source=key, target=target, open=is_open, tone=mark("Gate", gate.answer).tone)


def _from_environment(facts: PipelineFacts, upstream: str, target: str) -> Edge:
    state = facts.states[upstream]
    is_open = state.state in _OFF_ROUTE or (state.state == "Verified" and not state.health)
    tone = environment_mark(state).tone
    return Edge(source=_environment_key(upstream), target=target, open=is_open, tone=tone)


def _environment_key(name: str) -> str:
    return f"environment/{name}"


def _gate_key(environment: str, namespace: str, name: str) -> str:
    return f"gate/{environment}/{namespace}/{name}"
