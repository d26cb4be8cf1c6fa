"""The conditions of a Bundle beside Ready that say what keeps it, or what it goes by (pure).

    Paused     a freeze of its Pipeline holds it
    Held       an environment is kept from its next effect: by a gate, a freeze, or until a person puts something right
    TagMoved   a tag is another image than it was when the Bundle started
    NoAgent    no agent serves the shard of an environment
    Outdated   its Graph is not what it would be today, and does not follow the Pipeline or the gates

Each stands while it is true and is absent otherwise. What they say of other people's text (the message of a freeze, the
values of a gate) is shown as it is in the objects it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kardinal.api import PromotionStep
from kardinal.api.bundle import BundlePhase
from kardinal.api.commands import create_command
from kardinal.api.promotion_step import NO_AGENT
from kardinal.translation.drift import Drift
from kardinal_controller.bundles.observation import Observation

__all__ = ["HELD", "NOTICES", "OUTDATED", "PAUSED", "TAG_MOVED", "Notice", "notices"]

PAUSED, HELD, OUTDATED, TAG_MOVED = "Paused", "Held", "Outdated", "TagMoved"
NOTICES = (PAUSED, HELD, OUTDATED, TAG_MOVED, NO_AGENT)

_SHOWN = 4
"""Environments, and differences of one, that are told; of others there is the number."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A condition that is True."""

    type: str
    reason: str
    message: str


def notices(observation: Observation, phase: BundlePhase) -> Iterator[Notice]:
    """Yield what is true of a Bundle in a phase."""
    if observation.freeze is not None and phase == "Promoting":
        why = f": {observation.freeze}" if observation.freeze else ""
        yield Notice(PAUSED, PAUSED, f"Pipeline {_pipeline(observation)} is paused{why}; {_resume(observation)}")
    held = {name: entry.held for name, entry in observation.environments.items() if entry.held is not None}
    if held:
        yield Notice(HELD, HELD, "; ".join(f"{name}: {why}" for name, why in held.items()))
    if unserved := {name: each for name, step in observation.steps.items() if (each := _unserved(step))}:
        yield Notice(NO_AGENT, NO_AGENT, "; ".join(f"{name}: {why}" for name, why in unserved.items()))
    moved = [each for each in observation.bundle.status.artifacts or () if each.moved_to is not None]
    if moved:
        texts = [f"{each.reference} was {each.digest} and is {each.moved_to}" for each in moved]
        remedy = "environments without update.pinDigest get the image of today: to promote what was meant there, create"
        yield Notice(TAG_MOVED, TAG_MOVED, f"{_few(texts)}; {remedy} a Bundle with its digest")
    if phase in ("Promoting", "Failed") and (found := _outdated(observation)) is not None:
        yield found


def _unserved(step: PromotionStep) -> str:
    """Return that no agent takes a step; empty where one has."""
    condition = step.status.condition(NO_AGENT)
    return condition.message if condition is not None and condition.status == "True" else ""


def _outdated(observation: Observation) -> Notice | None:
    drift = observation.drift
    if observation.outcome is not None:
        # The Graph has just become another one than was compared; the next run compares that.
        known = observation.bundle.status.condition(OUTDATED)
        return Notice(OUTDATED, known.reason, known.message) if known is not None else None
    if not drift:
        return None
    pipeline, bundle = _pipeline(observation), observation.bundle
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


def _resume(observation: Observation) -> str:
    return f"to go on: kardinal resume {_pipeline(observation)}"


def _pipeline(observation: Observation) -> str:
    return observation.pipeline.metadata.name if observation.pipeline is not None else observation.label
