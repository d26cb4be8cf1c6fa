"""The page of a Graph: the readiness of each node beside the state of its child."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kardinal.graph.texts import texts
from kardinal.objects import JsonObject
from kardinal.objects.conditions import find_condition
from kardinal.objects.text import cut
from kardinal.promotion.api import Graph, PolicyGate
from kardinal.promotion.api.graph import NodeObject, NodeStatus
from kardinal.promotion.kinds import POLICY_GATE
from kardinal.promotion.views.gates import gate_answer
from kardinal_controller.ui.documents.bundles import condition_line
from kardinal_controller.ui.model import GraphDocument, GraphNodeLine, GraphRow

__all__ = ["graph_document", "graph_row"]

_STATE = 256
"""The most characters of the state of a child."""

_WORD = re.compile(r"""\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[.\w]+""")
"""Matches the literals and words of an expression; the word `dev.status.state` reads the node `dev`."""

_Child = tuple[str, str, str]
"""Kind, namespace and name of the object of a node."""


def graph_row(graph: JsonObject) -> GraphRow:
    """Return a Graph in a list."""
    found = Graph.model_validate(graph)
    accepted = found.status.condition("Accepted")
    ready = found.status.condition("Ready")
    worst = accepted if accepted is not None and accepted.status == "False" else ready
    return GraphRow(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        accepted=accepted.status if accepted is not None else "Unknown",
        ready=ready.status if ready is not None else "Unknown",
        message=worst.message if worst is not None else "",
        created=found.metadata.creation_timestamp,
    )


def graph_document(graph: JsonObject, children: Iterable[JsonObject]) -> GraphDocument:
    """Return the page of a Graph; `children` are the objects of its nodes that the viewer may see."""
    found = Graph.model_validate(graph)
    namespace = found.metadata.namespace
    by_name = {_identity(child): child for child in children}
    states = {node.id: node for node in found.status.nodes}
    upstreams = _upstreams(graph)
    return GraphDocument(
        namespace=namespace,
        name=found.metadata.name,
        conditions={condition.type: condition_line(condition) for condition in found.status.conditions},
        nodes={
            line.id: line
            for node in found.spec.nodes
            if (line := _line(node, states.get(str(node.get("id"))), by_name, upstreams, namespace)) is not None
        },
    )


def _line(
    node: Mapping[str, Any],
    status: NodeStatus | None,
    children: Mapping[_Child, JsonObject],
    upstreams: Mapping[str, Sequence[str]],
    namespace: str,
) -> GraphNodeLine | None:
    name = node.get("id")
    if not isinstance(name, str):
        return None
    child = _child(node, status.object if status is not None else None, namespace)
    stored = children.get(child)
    return GraphNodeLine(
        id=name,
        kind=child[0],
        name=child[2],
        ready="Unknown" if status is None else str(status.ready),
        message=(status.message or status.reason or status.state) if status is not None else "",
        child=_state_of(stored) if stored is not None else "",
        upstreams=list(upstreams.get(name, ())),
    )


def _upstreams(graph: JsonObject) -> dict[str, list[str]]:
    """Return the nodes that the expressions of each node name.

    The expressions are not compiled: that may take a second for a Graph of which the engine compiles each text once.
    """
    nodes = [node for node in graph["spec"].get("nodes") or () if isinstance(node, dict)]
    known = {node["id"] for node in nodes if isinstance(node.get("id"), str)}
    found: dict[str, list[str]] = {}
    for node in nodes:
        named = {word.partition(".")[0] for text in texts({"nodes": [node]}) for word in _WORD.findall(text)}
        own = node.get("id")
        if isinstance(own, str):
            found[own] = sorted((named & known) - {own})
    return found


def _child(node: Mapping[str, Any], seen: NodeObject | None, namespace: str) -> _Child:
    """Return the object of a node: the one in the status of the Graph, else the one that the node describes."""
    if seen is not None:
        return seen.kind, seen.namespace or "", seen.name
    body = next((found for word in ("template", "ref", "watch") if isinstance(found := node.get(word), dict)), {})
    metadata = body.get("metadata")
    described = metadata if isinstance(metadata, dict) else {}
    return (
        str(body.get("kind") or ""),
        str(described.get("namespace") or namespace),
        str(described.get("name") or ""),
    )


def _identity(child: JsonObject) -> _Child:
    metadata = child["metadata"]
    return str(child.get("kind") or ""), str(metadata.get("namespace") or ""), str(metadata["name"])


def _state_of(child: JsonObject) -> str:
    """Return the state that an object reports: `state` or `phase`, the answer of a gate, else its condition Ready."""
    status = child.get("status") or {}
    for field in ("state", "phase"):
        if isinstance(found := status.get(field), str):
            return cut(found, _STATE)
    if child.get("kind") == POLICY_GATE.kind:
        return gate_answer(PolicyGate.model_validate(child))
    for name in ("Ready", "Available"):
        condition = find_condition(status, name)
        if condition is not None:
            return cut(f"{name} {condition.get('status')}", _STATE)
    return ""
