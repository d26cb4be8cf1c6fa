"""The status of a Graph: what its author reads when something does not move (graph.md 1.2).

It is a function of what the walk found and of the status before, and says nothing that changes without a reason: no
values of objects, no counters, no times but those of transitions. A gate is named only while it holds something back,
so that one whose freshness runs out behind a finished promotion costs no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal

from kardinal.api import Graph, set_condition
from kardinal.api.graph import GraphStatus, NodeGate, NodeObject, NodeState, NodeStatus
from kardinal.kube import JsonObject
from kardinal_controller.graph.errors import GraphError
from kardinal_controller.graph.outcome import Outcome, Prune

__all__ = ["graph_status", "terminating_status"]

Truth = Literal["True", "False", "Unknown"]

_TEXT_LIMIT = 256
_WAIT_LIMIT = 20

_SEVERITY: tuple[NodeState, ...] = ("SystemError", "Error", "Conflict", "Blocked", "Pending", "NotReady")
_FAILING: frozenset[NodeState] = frozenset(["SystemError", "Error", "Conflict"])


def graph_status(
    graph: Graph,
    outcomes: Sequence[Outcome],
    *,
    error: GraphError | None,
    revision: str | None,
    now: datetime,
) -> JsonObject:
    """The status after a walk. With `error` the outcomes are those of the last revision that compiled, if any."""
    before, generation = graph.status, graph.metadata.generation
    accepted: Truth = "False" if error else "True"
    ready: Truth
    reason, message = (error.reason, error.message) if error else ("Compiled", "")
    conditions = before.conditions
    for type_ in ("Accepted", "Compiled"):
        conditions = set_condition(
            conditions, type_, accepted, reason=reason, message=message, now=now, observed_generation=generation
        )
    ready, reason, message = ("False", "NotCompiled", message) if error else _rolled_up(outcomes)
    conditions = set_condition(
        conditions, "Ready", ready, reason=reason, message=message, now=now, observed_generation=generation
    )
    held = {other for outcome in outcomes if outcome.reason == "Gated" for other in outcome.node.hard}
    previous = {node.id: node for node in before.nodes}
    return GraphStatus(
        observed_generation=generation,
        conditions=conditions,
        revision=revision,
        nodes=tuple(_node(outcome, previous.get(outcome.node.id), held, now) for outcome in outcomes),
        topological_order=tuple(outcome.node.id for outcome in outcomes),
    ).to_json()


def terminating_status(graph: Graph, left: Iterable[Prune], *, now: datetime) -> JsonObject:
    """The status while the objects of a deleted Graph go; it names those that are waited for."""
    names = ", ".join(sorted(str(prune.key) for prune in left))
    conditions = set_condition(
        graph.status.conditions,
        "Ready",
        "Unknown",
        reason="Terminating",
        message=f"waiting for {names} to be deleted",
        now=now,
        observed_generation=graph.metadata.generation,
    )
    return graph.status.model_copy(update={"conditions": conditions}).to_json()


def _rolled_up(outcomes: Sequence[Outcome]) -> tuple[Truth, str, str]:
    for state in _SEVERITY:
        worst = next((outcome for outcome in outcomes if outcome.state == state), None)
        if worst is not None:
            told = _message(worst)
            message = f"{worst.node.id}: {told}" if told else worst.node.id
            return ("False" if state in _FAILING else "Unknown"), state, message
    return "True", "Ready", "" if outcomes else "0 nodes"


def _message(outcome: Outcome) -> str | None:
    if outcome.message:
        return outcome.message
    if outcome.waiting_for:
        return f"{outcome.reason}: {', '.join(outcome.waiting_for)}"
    return outcome.reason


def _node(outcome: Outcome, before: NodeStatus | None, held: set[str], now: datetime) -> NodeStatus:
    since = before.last_transition_time if before and before.state == outcome.state else now
    node = outcome.node.id
    return NodeStatus(
        id=node,
        kind=outcome.kind,
        state=outcome.state,
        ready=outcome.state == "Ready",
        reason=outcome.reason,
        message=_cut(outcome.message) if outcome.message else None,
        waiting_for=tuple(_cut(item) for item in outcome.waiting_for[:_WAIT_LIMIT]),
        gate=NodeGate(open=False, expr=_cut(outcome.gate.expression)) if outcome.gate and node in held else None,
        object=_object(outcome.object) if outcome.object else None,
        last_transition_time=since,
    )


def _object(obj: JsonObject) -> NodeObject:
    metadata = obj["metadata"]
    return NodeObject(
        api_version=obj["apiVersion"],
        kind=obj["kind"],
        namespace=metadata.get("namespace"),
        name=metadata["name"],
        uid=metadata.get("uid"),
    )


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_LIMIT else f"{text[: _TEXT_LIMIT - 1]}…"
