"""The conditions of a Bundle beside Ready that tell of an obstacle or of a difference to today (pure).

    Paused     a freeze of its Pipeline holds it
    Held       an environment is kept from its next effect: by a gate, a freeze, or until a person puts something right
    TagMoved   a tag is another image than it was when the Bundle started
    NoAgent    no agent serves the shard of an environment
    GraphRefused  the Graph that a person has written for it is not walked
    Outdated   its Graph differs from the Graph that would be made today from the Pipeline and the gates

A condition that is not true is absent. Texts of other people in a message (the message of a freeze, the values of a
gate) are copied as they are in their objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kardinal.promotion.api import PromotionStep
from kardinal.promotion.api.bundle import BundlePhase
from kardinal.promotion.api.commands import create_command
from kardinal.promotion.api.promotion_step import NO_AGENT
from kardinal.promotion.translation.drift import Drift
from kardinal.promotion.translation.errors import GraphRefused
from kardinal_controller.bundles.observe import Facts
from kardinal_controller.bundles.rules import Projection

__all__ = ["GRAPH_REFUSED", "HELD", "OUTDATED", "PAUSED", "TAG_MOVED", "Notice", "notices"]

PAUSED = "Paused"
HELD = "Held"
OUTDATED = "Outdated"
TAG_MOVED = "TagMoved"
GRAPH_REFUSED = "GraphRefused"

_SHOWN = 4
"""The most environments, and differences of one environment, in a message; of further ones it has the number."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition of a Bundle with the status True."""

    type: str
    reason: str
    message: str


def notices(projection: Projection, phase: BundlePhase) -> Iterator[Notice]:
    """Yield the notices that apply to a Bundle in a phase."""
    facts = projection.facts
    if facts.freeze is not None and phase == "Promoting":
        why = f": {facts.freeze}" if facts.freeze else ""
        yield Notice(PAUSED, PAUSED, f"Pipeline {_pipeline(facts)} is paused{why}; {_resume(facts)}")
    held = {name: entry.held for name, entry in projection.environments.items() if entry.held is not None}
    if held:
        yield Notice(HELD, HELD, "; ".join(f"{name}: {why}" for name, why in held.items()))
    if unserved := {name: each for name, step in facts.steps.items() if (each := _unserved(step))}:
        yield Notice(NO_AGENT, NO_AGENT, "; ".join(f"{name}: {why}" for name, why in unserved.items()))
    moved = [each for each in facts.bundle.status.artifacts or () if each.moved_to is not None]
    if moved:
        texts = [f"{each.reference} was {each.digest} and is {each.moved_to}" for each in moved]
        remedy = "environments without update.pinDigest get the image of today: to promote what was meant there, create"
        yield Notice(TAG_MOVED, TAG_MOVED, f"{_few(texts)}; {remedy} a Bundle with its digest")
    if isinstance(facts.done.refusal, GraphRefused):
        yield Notice(GRAPH_REFUSED, GRAPH_REFUSED, str(facts.done.refusal))
    if phase in ("Promoting", "Failed") and (found := _outdated(facts)) is not None:
        yield found


def _unserved(step: PromotionStep) -> str:
    """Return the message that no agent takes a step; empty if an agent has taken it."""
    condition = step.status.condition(NO_AGENT)
    return condition.message if condition is not None and condition.status == "True" else ""


def _outdated(facts: Facts) -> Notice | None:
    drift = facts.drift
    if facts.done.graph is not None or facts.done.refusal is not None:
        # This run has changed the Graph since the comparison; the next run compares again.
        known = facts.bundle.status.condition(OUTDATED)
        return Notice(OUTDATED, known.reason, known.message) if known is not None else None
    if not drift:
        return None
    pipeline = _pipeline(facts)
    bundle = facts.bundle
    # The command stands before the details, which may be long and are cut.
    sentences = []
    if drift.changed:
        again = create_command(bundle, pipeline) or f"create another Bundle of {pipeline} with these artifacts"
        sentences.append(f"the Bundle goes by the Pipeline and gates that it started with; with today's: {again}")
    if drift.added:
        command = f"kardinal promote {pipeline} --bundle {bundle.metadata.name} --env {drift.added[0]}"
        sentences.append(f"{_few(drift.added)} came to the Pipeline since; to go there: {command}")
    if drift.changed:
        sentences.append(f"other today: {_differences(drift.changed)}")
    return Notice(OUTDATED, _reason(drift), "; ".join(sentences))


def _reason(drift: Drift) -> str:
    if drift.of_pipeline:
        return "PipelineChanged"
    return "GatesChanged" if drift.changed else "EnvironmentAdded"


def _differences(changed: Mapping[str, Sequence[str]]) -> str:
    texts = [f"{name} ({_few(what)})" for name, what in changed.items()]
    return _few(texts)


def _few(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _resume(facts: Facts) -> str:
    return f"to go on: kardinal resume {_pipeline(facts)}"


def _pipeline(facts: Facts) -> str:
    return facts.pipeline.metadata.name if facts.pipeline is not None else facts.label
