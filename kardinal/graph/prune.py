"""Pruning: which objects have to be deleted or released, and in which order.

A candidate is an object that belongs to the Graph, or has fields of one of its patches, and that no node wants any
more: its node was removed from the Graph, is excluded, or now has an object of another name. While the state of a node
is in doubt (data missing, a dependency failed, a gate closed), its object is no candidate: nothing is deleted before it
is certain that no node wants it.

Candidates go in waves: the objects of the last layer of the Graph first, and the next layer when those have disappeared
from the API server. The layers are known without evaluating an expression, from the Graph or else from an annotation,
because a Graph whose data is gone must still be deletable. An object that a finalizer keeps for longer than
`DELETED_WITHIN` is no longer waited for, since every user who may write the object may add a finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from kardinal.graph.compile import CompiledGraph, CompiledNode
from kardinal.graph.dialect import NODE_LIMIT
from kardinal.graph.identity import APPLY_ORDER, GraphIdentity, ObjectKey, node_of
from kardinal.graph.walk_types import Observed, Prune
from kardinal.objects import JsonObject

__all__ = [
    "DELETED_WITHIN",
    "Candidate",
    "Marked",
    "Plan",
    "candidates_of",
    "marked_objects",
    "patience_ends",
    "plan_of",
    "teardown_wave",
]

DELETED_WITHIN = timedelta(minutes=10)
"""The longest wait for a deleted object to disappear before the objects of the next layer are deleted anyway."""

_LAST = -1


class Marked(NamedTuple):
    """An object with the marks of a Graph: to be deleted when no node wants it, or with `release` only let go."""

    key: ObjectKey
    object: JsonObject
    release: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """An object to delete, or to release. `node` is the id of its node, None where the Graph has it no longer."""

    key: ObjectKey
    object: JsonObject
    release: bool
    layer: int
    node: str | None = None

    @property
    def intact(self) -> bool:
        """Return whether the deletion has not begun yet."""
        return _deleted_at(self.object) is None


def candidates_of(
    graph: CompiledGraph,
    identity: GraphIdentity,
    marked: Iterable[Marked],
    *,
    goes: Callable[[CompiledNode], bool],
    wanted: Container[ObjectKey],
    now: datetime,
) -> list[Candidate]:
    """Return the candidates that are waited for. `goes`: whether a node no longer wants what it does not claim."""
    found = []
    for each in marked:
        if each.key in wanted:
            continue
        node = graph.by_label.get(node_of(each.object, identity) or "")
        if node is None:
            found.append(_candidate(each, identity))
        elif goes(node):
            found.append(Candidate(*each, layer=node.layer, node=node.id))
    return _awaited(found, now)


@dataclass(frozen=True, slots=True)
class Plan:
    """The objects that are the next ones to go, and the hooks that act before they do."""

    next_ones: Sequence[Candidate]
    hooks: Sequence[CompiledNode] = ()

    def wave(self, held: Container[str | None] = ()) -> tuple[Prune, ...]:
        """Return the deletions and releases; those of the nodes in `held` wait for hooks."""
        return tuple(
            Prune(each.key, each.object, release=each.release, held=each.node in held) for each in self.next_ones
        )


def plan_of(graph: CompiledGraph, candidates: Sequence[Candidate]) -> Plan:
    """Return what goes next.

    A hook acts when the objects of its node are the next ones to go and one of them is not being deleted yet. Until all
    are being deleted, the objects of the nodes that it needs stay; until they are gone, its own do.
    """
    due: list[CompiledNode] = []
    kept: set[str | None] = set()
    for hook in graph.hooks:
        target = hook.declaration.finalizes
        going = [each for each in candidates if each.node == target]
        if going:
            candidates = [each for each in candidates if each.node != hook.id]
        if any(each.intact for each in going):
            due.append(hook)
            kept |= graph.needed_by(hook) - {target}
    next_ones = _last_layer([each for each in candidates if each.node not in kept] or candidates)
    nodes = {each.node for each in next_ones}
    return Plan(next_ones, [hook for hook in due if hook.declaration.finalizes in nodes])


def teardown_wave(identity: GraphIdentity, observed: Observed, *, now: datetime) -> tuple[Prune, ...]:
    """Return the deletions and releases that may happen now when all objects of the Graph go.

    Empty when there is none to wait for.
    """
    candidates = [_candidate(each, identity) for each in marked_objects(observed)]
    return Plan(_last_layer(_awaited(candidates, now))).wave()


def patience_ends(prunes: Iterable[Prune]) -> datetime | None:
    """Return when the wait for the first of these objects ends; None when none of them is being deleted."""
    return min(
        (began + DELETED_WITHIN for prune in prunes if (began := _deleted_at(prune.object)) is not None), default=None
    )


def marked_objects(observed: Observed) -> list[Marked]:
    """Return the objects that belong to the Graph, and those that have fields of its patches."""
    return [
        *(Marked(key, obj, release=False) for key, obj in observed.owned()),
        *(Marked(key, obj, release=True) for key, obj in observed.patched()),
    ]


def _candidate(each: Marked, identity: GraphIdentity) -> Candidate:
    """Return the candidate of an object whose node is not known, with the layer in its annotation."""
    annotation = identity.patch_marks.order if each.release else APPLY_ORDER
    return Candidate(*each, layer=_layer(each.object, annotation))


def _last_layer(candidates: Sequence[Candidate]) -> list[Candidate]:
    last = max((each.layer for each in candidates), default=_LAST)
    return [each for each in candidates if each.layer == last]


def _awaited(candidates: Sequence[Candidate], now: datetime) -> list[Candidate]:
    """Return the candidates without those that are on their way out for too long, and those that others delete."""
    found = []
    for each in candidates:
        began = _deleted_at(each.object)
        if began is None or (not each.release and now < began + DELETED_WITHIN):
            found.append(each)
    return found


def _deleted_at(obj: JsonObject) -> datetime | None:
    text = obj["metadata"].get("deletionTimestamp")
    return datetime.fromisoformat(text) if text else None


def _layer(obj: JsonObject, annotation: str) -> int:
    """Return the layer in an annotation.

    Any user may have written it, so it is bounded by the most layers of a Graph.
    """
    text = (obj["metadata"].get("annotations") or {}).get(annotation, "")
    usable = text.isascii() and text.isdigit() and len(text) <= len(str(NODE_LIMIT))
    return min(int(text), NODE_LIMIT) if usable else _LAST
