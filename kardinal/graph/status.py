"""The status of a Graph, for its author to read when something does not progress.

The status is a function of the results of a walk and of the previous status. It contains no values of objects, no
counters and no times except those of transitions, so that it is written only when a node changes its state. A gate is
named only while it holds a node back: a gate that closes again behind a finished promotion causes no write.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from kardinal.graph.errors import GraphError
from kardinal.graph.walk_types import SEVERITY, NodeResult, Prune
from kardinal.objects import JsonObject, NodeState
from kardinal.objects.conditions import Truth, format_time, set_condition
from kardinal.objects.text import cut

__all__ = ["graph_status", "terminating_status"]

_TEXT_LIMIT = 256
"""The most characters of a message, an expression or a dependency in the status of a node."""
_WAIT_LIMIT = 20
"""The number of dependencies that the status of a node names."""

_FAILING: frozenset[NodeState] = frozenset(["SystemError", "Error", "Conflict"])


def graph_status(
    graph: JsonObject,
    results: Sequence[NodeResult],
    *,
    error: GraphError | None,
    revision: str | None,
    now: datetime,
) -> JsonObject:
    """Return the status after a walk.

    With `error`, the Graph does not compile, and the results are of its last revision.
    """
    before: Mapping[str, Any] = graph.get("status") or {}
    generation: int = graph["metadata"].get("generation", 0)
    accepted: Truth = "False" if error else "True"
    reason, message = (error.reason, error.message) if error else ("Compiled", "")
    conditions: list[JsonObject] = before.get("conditions") or []
    for type_ in ("Accepted", "Compiled"):
        conditions = set_condition(
            conditions, type_, accepted, reason=reason, message=message, now=now, observed_generation=generation
        )
    ready: Truth
    ready, reason, message = ("False", "NotCompiled", message) if error else _rolled_up(results)
    conditions = set_condition(
        conditions, "Ready", ready, reason=reason, message=message, now=now, observed_generation=generation
    )
    holding = {other for result in results if result.reason == "Gated" for other in result.node.hard}
    previous = {node["id"]: node for node in before.get("nodes") or ()}
    status = {
        "observedGeneration": generation,
        "conditions": conditions,
        "revision": revision,
        "nodes": [_node(result, previous.get(result.node.id), holding, now) for result in results],
        "topologicalOrder": [result.node.id for result in results],
    }
    return _present(status)


def terminating_status(
    graph: JsonObject, left: Iterable[Prune], *, now: datetime, results: Iterable[NodeResult] = ()
) -> JsonObject:
    """Return the status while the objects of a deleted Graph are removed.

    `left` are the objects it still waits for, `results` those of its nodes, of which only hooks act.
    """
    names = ", ".join(sorted({prune.told for prune in left}))
    before: JsonObject = graph.get("status") or {}
    blocked = _blocked(results)
    ready, reason, message = blocked or ("Unknown", "Terminating", f"waiting for {names} to be deleted")
    conditions = set_condition(
        before.get("conditions") or [],
        "Ready",
        ready,
        reason=reason,
        message=message,
        now=now,
        observed_generation=graph["metadata"].get("generation", 0),
    )
    return {**before, "conditions": conditions}


def _blocked(results: Iterable[NodeResult]) -> tuple[Truth, str, str] | None:
    """Return the condition of a Graph one of whose hooks holds up a deletion; None if none does."""
    for result in results:
        if result.blocks:
            target = result.node.declaration.finalizes
            return "False", "TeardownBlocked", f"{target} is deleted when {result.node.id} is Ready: {_message(result)}"
    return None


def _rolled_up(results: Sequence[NodeResult]) -> tuple[Truth, str, str]:
    if blocked := _blocked(results):
        return blocked
    for state in SEVERITY:
        worst = next((result for result in results if result.state == state), None)
        if worst is not None:
            message = _message(worst)
            return (
                "False" if state in _FAILING else "Unknown",
                state,
                f"{worst.node.id}: {message}" if message else worst.node.id,
            )
    return "True", "Ready", "" if results else "0 nodes"


def _message(result: NodeResult) -> str | None:
    if result.message:
        return result.message
    if result.waiting_for:
        return f"{result.reason}: {', '.join(result.waiting_for)}"
    return result.reason


def _node(result: NodeResult, before: Mapping[str, Any] | None, holding: set[str], now: datetime) -> JsonObject:
    unchanged = before is not None and before.get("state") == result.state
    node = result.node.id
    gate = {"open": False, "expr": cut(result.gate.expression, _TEXT_LIMIT)} if result.gate else None
    return _present(
        {
            "id": node,
            "kind": result.kind,
            "state": result.state,
            "ready": result.state == "Ready",
            "reason": result.reason,
            "message": cut(result.message, _TEXT_LIMIT) if result.message else None,
            "waitingFor": [cut(item, _TEXT_LIMIT) for item in result.waiting_for[:_WAIT_LIMIT]],
            "gate": gate if node in holding else None,
            "object": _object(result.object) if result.object else None,
            "children": dict(zip(("total", "ready"), result.children, strict=True)) if result.children else None,
            "lastTransitionTime": before.get("lastTransitionTime") if unchanged and before else format_time(now),
        }
    )


def _object(obj: JsonObject) -> JsonObject:
    metadata = obj["metadata"]
    return _present(
        {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "namespace": metadata.get("namespace"),
            "name": metadata["name"],
            "uid": metadata.get("uid"),
        }
    )


def _present(fields: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
