"""Pruning: which objects have to be deleted, and in which order.

A candidate is an object that belongs to the Graph and that no node wants any more: its node was removed from the Graph,
is excluded, or now has an object of another name. While the state of a node is in doubt (data missing, a dependency
failed, a gate closed), its object is no candidate: nothing is deleted before it is certain that no node wants it.

Objects are deleted in waves: the objects of the last layer of the Graph first, and the next layer when those have
disappeared from the API server. The layers are known without evaluating an expression, from the Graph or else from an
annotation, because a Graph whose data is gone must still be deletable. An object that a finalizer keeps for longer than
`DELETED_WITHIN` is no longer waited for, since every user who may write the object may add a finalizer.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime, timedelta

from kardinal.graph.compile import CompiledGraph
from kardinal.graph.dialect import NODE_LIMIT
from kardinal.graph.identity import APPLY_ORDER, GraphIdentity, ObjectKey, node_of
from kardinal.graph.walk_types import Prune
from kardinal.objects import JsonObject

__all__ = ["DELETED_WITHIN", "next_wave", "patience_ends", "teardown_wave"]

DELETED_WITHIN = timedelta(minutes=10)
"""The longest wait for a deleted object to disappear before the objects of the next layer are deleted anyway."""

_LAST = -1


def next_wave(
    graph: CompiledGraph,
    identity: GraphIdentity,
    owned: Iterable[tuple[ObjectKey, JsonObject]],
    *,
    excluded: Container[str],
    made: Container[str],
    wanted: Container[ObjectKey],
    now: datetime,
) -> tuple[Prune, ...]:
    """Return the deletions that may happen now. `made` are the nodes whose wanted object exists."""
    candidates = []
    for key, obj in owned:
        if key in wanted:
            continue
        node = graph.by_label.get(node_of(obj, identity) or "")
        if node is None:
            candidates.append((_annotated_layer(obj), key, obj))
        elif node.id in excluded or node.id in made:
            candidates.append((node.layer, key, obj))
    return _wave(candidates, now)


def teardown_wave(owned: Iterable[tuple[ObjectKey, JsonObject]], *, now: datetime) -> tuple[Prune, ...]:
    """Return the deletions that may happen now when all objects of the Graph go.

    Empty when there is none to wait for.
    """
    return _wave([(_annotated_layer(obj), key, obj) for key, obj in owned], now)


def patience_ends(prunes: Iterable[Prune]) -> datetime | None:
    """Return when the wait for the first of these objects ends; None when none of them is being deleted."""
    return min(
        (began + DELETED_WITHIN for prune in prunes if (began := _deleted_at(prune.object)) is not None), default=None
    )


def _wave(candidates: Iterable[tuple[int, ObjectKey, JsonObject]], now: datetime) -> tuple[Prune, ...]:
    awaited = [each for each in candidates if (began := _deleted_at(each[2])) is None or now < began + DELETED_WITHIN]
    last = max((layer for layer, _, _ in awaited), default=_LAST)
    return tuple(Prune(key, obj) for layer, key, obj in awaited if layer == last)


def _deleted_at(obj: JsonObject) -> datetime | None:
    text = obj["metadata"].get("deletionTimestamp")
    return datetime.fromisoformat(text) if text else None


def _annotated_layer(obj: JsonObject) -> int:
    """Return the layer in the annotation.

    Any user may have written it, so it is bounded by the most layers of a Graph.
    """
    text = (obj["metadata"].get("annotations") or {}).get(APPLY_ORDER, "")
    usable = text.isascii() and text.isdigit() and len(text) <= len(str(NODE_LIMIT))
    return min(int(text), NODE_LIMIT) if usable else _LAST
