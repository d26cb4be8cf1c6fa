"""Results of earlier passes: a node at rest keeps its result for as long as all that it was made of is the same.

The same means the same objects in memory, not equal ones: an object in the caches is replaced when it changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import is_

from kardinal.graph.compile import CompiledNode
from kardinal.graph.identity import ObjectKey, object_key
from kardinal.graph.selection import Selection
from kardinal.graph.walk_types import NodeResult, Remembered, Unobserved, WalkInput
from kardinal.objects import JsonObject, ResourceType

__all__ = ["EarlierResults", "repeatable"]


def repeatable(remembered: dict[str, Remembered], answers: Mapping[ObjectKey, JsonObject]) -> dict[str, Remembered]:
    """Return the results that a later reconcile may repeat: none that was made of an answer to an apply.

    The caches will have an equal object instead of the answer, so that the answer would be in memory without any use.
    A result comes after those that it was made of.
    """
    if not answers:
        return remembered
    kept: dict[str, Remembered] = {}
    for node, each in remembered.items():
        is_kept = all(other in kept and kept[other].outcome is before for other, before in each.before)
        if is_kept and not any(answers.get(key) is obj for key, obj in _read_by(each)):
            kept[node] = each
    return kept


def _read_by(result: Remembered) -> Iterator[tuple[ObjectKey, JsonObject]]:
    if result.key is not None and result.live is not None:
        yield result.key, result.live
    if result.selection is not None:
        for obj in result.outcome.value:
            yield object_key(result.selection.resource, obj), obj


class EarlierResults:
    """The results of earlier passes over one Graph, for a pass whose results so far are `outcomes`."""

    def __init__(self, situation: WalkInput, outcomes: Mapping[str, NodeResult]) -> None:
        self._situation = situation
        self._observed = situation.observed
        self._remembered = situation.remembered
        self._outcomes = outcomes

    def of(self, node: CompiledNode) -> Remembered | None:
        """Return the result of a node in an earlier pass if it was made of what there is now; None otherwise."""
        earlier = self._remembered.get(node.id)
        if earlier is None or earlier.node is not node:
            return None
        for other, before in earlier.before:
            if self._outcomes[other] is not before:
                return None
        try:
            return earlier if self._is_up_to_date(earlier) else None
        except Unobserved:
            return None

    def _is_up_to_date(self, earlier: Remembered) -> bool:
        """Return whether what a node reads of the cluster is still there; raises Unobserved."""
        if earlier.selection is not None:
            items = self._observed.select(earlier.selection)
            before: list[JsonObject] = earlier.outcome.value
            return len(items) == len(before) and all(map(is_, items, before))
        key = earlier.key
        live = earlier.live
        if key is None or live is None:
            return True
        return (
            self._observed.get(key) is live
            and self._resource_of(live) == key.resource
            and self._situation.accepted.get(key) == earlier.accepted
        )

    def forget(self, node: CompiledNode) -> None:
        self._remembered.pop(node.id, None)

    def keep(self, node: CompiledNode, outcome: NodeResult, selection: Selection | None) -> None:
        """Remember the result of a node whose object is as it wants it, and of one that only reads."""
        at_rest = outcome.state in ("Ready", "NotReady") and not outcome.settling
        if not at_rest or not node.steady or any(other not in self._outcomes for other in node.soft):
            return
        before = tuple((other, self._outcomes[other]) for other in (*node.hard, *node.soft))
        key = live = None
        if node.declaration.kind not in ("def", "watch"):
            live = outcome.object
            if live is None or (resource := self._resource_of(live)) is None:
                return
            key = object_key(resource, live)
        accepted = self._situation.accepted.get(key) if key is not None else None
        self._remembered[node.id] = Remembered(node, before, key, live, accepted, outcome, selection)

    def _resource_of(self, live: JsonObject) -> ResourceType | None:
        return self._situation.kinds.get((live["apiVersion"], live["kind"]))
