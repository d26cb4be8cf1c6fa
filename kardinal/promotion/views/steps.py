"""Rows of the gates and PromotionSteps of one Bundle, as `kardinal get steps` lists them (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kardinal.promotion.views.environments import EnvironmentState, promotion_states
from kardinal.promotion.views.gates import GateLine
from kardinal.promotion.views.reading import PipelineObjects
from kardinal.promotion.views.render_failures import render_failure
from kardinal.promotion.views.states import no_longer_healthy

__all__ = ["NodeLine", "node_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLine:
    """One gate, or the PromotionStep of an environment; for a PromotionStep `gate` is None."""

    environment: str
    gate: GateLine | None = None
    state: str
    message: str


def node_lines(objects: PipelineObjects, failures: Mapping[str, str]) -> list[NodeLine]:
    """Return the rows of each environment: its gates, then its PromotionStep.

    `failures` is the result of `render_failures`.
    """
    states, gates = promotion_states(objects)
    return [line for state in states for line in _lines(state, gates, failures)]


def _lines(state: EnvironmentState, gates: list[GateLine], failures: Mapping[str, str]) -> Iterator[NodeLine]:
    for gate in gates:
        if gate.environment == state.name:
            yield NodeLine(environment=state.name, gate=gate, state=gate.answer, message=gate.detail)
    message = "; ".join(filter(None, (state.message, render_failure(state.step, failures))))
    if state.health:
        message = no_longer_healthy(message)
    yield NodeLine(environment=state.name, state=state.health or state.state, message=message)
