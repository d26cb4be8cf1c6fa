"""Pruning: which objects have to be deleted, and in which order.

A candidate is an object that carries our label and that no node wants any more: its node is gone, is excluded, or has
made an object of another name. An object whose node is in doubt (data missing, a dependency failed, a gate closed) is
no candidate: absence must be certain before anything is deleted.

Objects go in waves, what comes last in the Graph first, and a wave waits until the one before has really disappeared.
The order is known without evaluating anything, from the Graph or else from an annotation: a Graph whose data are gone
must still be deletable.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from kardinal.graph.compile import CompiledGraph
from kardinal.graph.identity import ADOPTED, APPLY_ORDER, GraphIdentity, ObjectKey, node_of
from kardinal.graph.walk_types import Prune
from kardinal.objects import JsonObject

__all__ = ["next_wave", "teardown_wave"]

_LAST = -1


def next_wave(
    graph: CompiledGraph,
    identity: GraphIdentity,
    owned: Iterable[tuple[ObjectKey, JsonObject]],
    *,
    excluded: Container[str],
    made: Container[str],
    wanted: Container[ObjectKey],
) -> tuple[Prune, ...]:
    """Return the deletions that may happen now; of nodes in `made` the object they want exists."""
    candidates = []
    for key, obj in owned:
        node = graph.by_label.get(node_of(obj, identity) or "")
        if key in wanted:
            continue
        if node is None:
            candidates.append((_annotated_layer(obj), key, obj))
        elif node.id in excluded or node.id in made:
            candidates.append((node.layer, key, obj))
    return _wave(candidates)


def teardown_wave(owned: Iterable[tuple[ObjectKey, JsonObject]]) -> tuple[Prune, ...]:
    """Return the deletions that may happen now when everything has to go; empty when nothing is left."""
    return _wave([(_annotated_layer(obj), key, obj) for key, obj in owned])


def _wave(candidates: list[tuple[int, ObjectKey, JsonObject]]) -> tuple[Prune, ...]:
    last = max((layer for layer, _, _ in candidates), default=_LAST)
    return tuple(Prune(key, obj, release=_has(obj, ADOPTED)) for layer, key, obj in candidates if layer == last)


def _has(obj: JsonObject, annotation: str) -> bool:
    annotations: Container[str] = obj["metadata"].get("annotations") or ()
    return annotation in annotations


def _annotated_layer(obj: JsonObject) -> int:
    text = (obj["metadata"].get("annotations") or {}).get(APPLY_ORDER, "")
    return int(text) if text.isascii() and text.isdigit() else _LAST
