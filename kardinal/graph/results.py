"""Results of nodes as a walk makes them, and what of them may be told."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kardinal import cel
from kardinal.graph.compile import CompiledForEach, CompiledNode
from kardinal.graph.desired import Unidentified, identify
from kardinal.graph.dialect import body_problems
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.identity import ObjectKey
from kardinal.graph.selection import Selection
from kardinal.graph.template import value_of
from kardinal.graph.walk_types import NodeResult, Unobserved, WalkInput
from kardinal.objects import SECRET, JsonObject, NodeState
from kardinal.objects.duration import format_duration
from kardinal.objects.label_selectors import parse_selector

__all__ = [
    "FAILED",
    "OUTSIDE_LIMIT",
    "WITHOUT_DATA",
    "NoList",
    "discreet",
    "ids_in",
    "is_terminating",
    "items_of",
    "pending",
    "refused_outside",
    "rendered",
    "selection_of",
    "timed",
    "unobserved",
]

FAILED: frozenset[NodeState] = frozenset(["Blocked", "Error", "Conflict", "SystemError"])
WITHOUT_DATA: frozenset[NodeState] = frozenset(["Pending"])
OUTSIDE_LIMIT = 1000
"""The most objects outside its namespace that a Graph makes."""
ITEM_LIMIT = 1000
"""The most items of a forEach."""

_WITHOUT_VALUES = frozenset(["NotReady", "NoMatches", "TimedOut", "ExpressionError", "IncludeWhen"])
"""The reasons whose messages contain no data of objects."""
_DISCREET = "not told, because the node has data of a Secret"


class NoList(Exception):
    """A list of forEach that is none, or too long."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def items_of(for_each: CompiledForEach, evaluator: Evaluator) -> list[object]:
    """Return the list of forEach; raises Unrenderable, and NoList."""
    items = value_of(for_each.items, "forEach", evaluator)
    if not isinstance(items, list):
        raise NoList("InvalidList", "forEach needs a list")
    if len(items) > ITEM_LIMIT:
        raise NoList("TooManyItems", f"forEach has {len(items):,} items: at most {ITEM_LIMIT:,}")
    return items


def refused_outside(node: CompiledNode, key: ObjectKey, situation: WalkInput) -> NodeResult | None:
    """Return the result of a node that may make no more objects outside the namespace of its Graph; None of others.

    Raises Unidentified where such an object may not be made there at all.
    """
    own = situation.identity.namespace
    if key.namespace == own:
        return None
    if situation.outside is None or key.resource == SECRET or key.resource in situation.free:
        raise Unidentified(f"{key} is not in {own}: this Graph makes such objects in its own namespace only")
    if situation.outside.has_room(key):
        return None
    message = f"a Graph makes at most {OUTSIDE_LIMIT:,} objects outside its namespace"
    return NodeResult(node, "template", "Error", "TooManyObjects", message)


def selection_of(node: CompiledNode, body: JsonObject, situation: WalkInput) -> Selection:
    """Return the selection of a rendered watch; raises SelectorError, UnservedKind and Unidentified."""
    metadata = body.get("metadata", {})
    # A collection has no name; one is filled in so that `identify` can determine its kind and namespace.
    key = identify({**body, "metadata": {"name": node.id}}, situation.identity, situation.kinds)
    requirements = parse_selector(body.get("selector", metadata.get("selector", {})))
    namespace = metadata.get("namespace")
    if namespace is not None and (not isinstance(namespace, str) or not namespace):
        raise Unidentified("metadata.namespace must be a text")
    return Selection(key.resource, namespace, requirements)


def timed(outcome: NodeResult, situation: WalkInput) -> tuple[NodeResult, datetime | None]:
    """Return the result of a node that is NotReady, as TimedOut after its timeout; before, with the time of that."""
    timeout = outcome.node.declaration.timeout
    if timeout is None:
        return outcome, None
    until = situation.not_ready_since.get(outcome.node.id, situation.now) + timeout
    if situation.now < until:
        return outcome, until
    message = f"not ready for {format_duration(timeout)}: {outcome.message}"
    return replace(outcome, reason="TimedOut", message=message), None


def rendered(node: CompiledNode, evaluator: Evaluator) -> object:
    """Return the body of a node with its data; raises Unrenderable, and Unidentified for an object that is none."""
    body = node.body.render(evaluator)
    if isinstance(node.declaration.body, dict):
        return body
    if body is cel.OMIT:
        raise Unidentified("the expression of the body has no value")
    for field, message in body_problems(node.declaration.kind, body):
        raise Unidentified(f"{node.declaration.keyword}{field} {message}")
    return body


def pending(
    node: CompiledNode, reason: str, *, message: str | None = None, waiting_for: tuple[str, ...] = ()
) -> NodeResult:
    return NodeResult(node, node.declaration.kind, "Pending", reason, message, waiting_for=waiting_for)


def unobserved(node: CompiledNode, error: Unobserved) -> NodeResult:
    return NodeResult(node, node.declaration.kind, error.state, error.reason, str(error))


def discreet(outcome: NodeResult) -> NodeResult:
    """Return the result of a node that has data of a Secret without what may be made of it: names, answers of a server.

    The message about an unmet condition or an expression names its text and its place, and never a value.
    """
    message = outcome.message if outcome.reason in _WITHOUT_VALUES or not outcome.message else _DISCREET
    body = outcome.node.declaration.body
    named = isinstance(body, dict) and "${" not in str(body.get("metadata"))
    return replace(outcome, message=message, object=outcome.object if named else None)


def ids_in(outcomes: list[NodeResult], states: frozenset[NodeState]) -> tuple[str, ...]:
    return tuple(outcome.node.id for outcome in outcomes if outcome.state in states)


def is_terminating(obj: JsonObject) -> bool:
    return "deletionTimestamp" in obj["metadata"]
