"""One pass over a Graph: from the observed objects to the state of each node, and the applies and deletions to make.

A pass is a pure function of the compiled graph, the observed objects and the time. No state is kept between passes, so
that a restart, a lost event or a doubled event has no effect on the result; only the failures of expressions that
exceeded their budget are kept, to save their evaluation. The rules:

- a pass over unchanged objects results in no apply and no deletion;
- the data of a node is its live object, never its rendered template: a node that comes after it reads the fields as the
  API server stored them;
- a closed gate holds the nodes after it as they are: their objects are not created, changed or deleted, but their state
  is still observed, so that a running step can finish;
- an object is deleted only when it is certain that no node wants it.

An object that has to be applied is not among the observed ones yet: the caller applies it, adds the answer of the API
server to the observed objects, and walks again until a pass results in no apply.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from datetime import datetime
from typing import cast

from kardinal.graph.compile import CompiledGraph, CompiledNode
from kardinal.graph.conditions import first_unmet, next_flip
from kardinal.graph.desired import Desired, Unidentified, UnservedKind, desired_object, identify, literal_key
from kardinal.graph.drift import applied_part, covers
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.identity import TEMPLATE_HASH, ObjectKey, content_hash, is_owned_by, node_of
from kardinal.graph.prune import next_wave, patience_ends
from kardinal.graph.selection import Selection, SelectorError, parse_selector
from kardinal.graph.template import Unrenderable
from kardinal.graph.walk_types import Apply, NodeResult, Seen, Walk, WalkInput
from kardinal.objects import JsonObject, NodeKind, NodeState

__all__ = ["walk", "walking"]

_FAILED: frozenset[NodeState] = frozenset(["Blocked", "Error", "Conflict", "SystemError"])
_WITHOUT_DATA: frozenset[NodeState] = frozenset(["Pending"])


def walk(graph: CompiledGraph, situation: WalkInput) -> Walk:
    """Return the result of one pass over every node, dependencies first."""
    steps = walking(graph, situation)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return cast("Walk", finished.value)


def walking(graph: CompiledGraph, situation: WalkInput) -> Generator[Callable[[], Seen], None, Walk]:
    """Make one pass that can pause after each node, since a thousand nodes with costly expressions take long.

    The observed objects may change during a pause, including those that were read already. The generator therefore
    yields the objects and selections that were read so far, and a caller that pauses must start another pass when one
    of them changes.
    """
    walker = _Walker(situation)
    for node in graph.nodes:
        walker.visit(node)
        yield walker.seen
    prunes = next_wave(
        graph,
        situation.identity,
        walker.owned,
        excluded={outcome.node.id for outcome in walker.outcomes.values() if outcome.state == "Excluded"},
        made=walker.made,
        wanted=walker.claimed,
        now=situation.now,
    )
    if (moment := patience_ends(prunes)) is not None:
        walker.moments.append(moment)
    return Walk(
        tuple(walker.outcomes.values()),
        tuple(walker.applies),
        prunes,
        min(walker.moments, default=None),
        frozenset(walker.reads),
        frozenset(walker.selections),
    )


class _Walker:
    def __init__(self, situation: WalkInput) -> None:
        self._situation = situation
        self._identity = situation.identity
        self._observed = situation.observed
        self._now = situation.now
        self._evaluator = Evaluator(now=situation.now, overruns=situation.overruns)
        self.owned = situation.observed.owned()
        self._own = {node: obj for _, obj in self.owned if (node := node_of(obj, self._identity)) is not None}
        self.outcomes: dict[str, NodeResult] = {}
        self.claimed: dict[ObjectKey, str] = {}
        self.made: set[str] = set()
        self.applies: list[Apply] = []
        self.moments: list[datetime] = []
        self.reads: set[ObjectKey] = set()
        self.selections: set[Selection] = set()

    def seen(self) -> Seen:
        return Seen(frozenset(self.reads), frozenset(self.selections))

    def visit(self, node: CompiledNode) -> None:
        self._evaluator.begin(node.id)
        outcome = self._kept_back(node) or self._resolved(node)
        self.outcomes[node.id] = outcome
        literal = literal_key(node, self._identity, self._situation.kinds)
        if literal is not None and outcome.state != "Excluded":
            self.claimed.setdefault(literal, node.id)
        conditions = (*node.include_when, *node.inflow, *node.outflow, *node.ready_when)
        flips = [next_flip(conditions, self._evaluator)]
        flips += [self._evaluator.next_flip(program) for _, program in node.body.programs]
        self.moments += [flip for flip in flips if flip is not None]

    def _kept_back(self, node: CompiledNode) -> NodeResult | None:
        """Return the result of a node that its dependencies keep back, or None when the node may act.

        The reasons in the order of their priority: a dependency is excluded, has failed, has no data, or has a closed
        gate.
        """
        before = [self.outcomes[other] for other in node.hard]
        if any(other.state == "Excluded" for other in before):
            return NodeResult(node, node.declaration.kind, "Excluded", "DependencyExcluded")
        if failed := _ids(before, _FAILED):
            return NodeResult(node, node.declaration.kind, "Blocked", "DependencyFailed", waiting_for=failed)
        if pending := _ids(before, _WITHOUT_DATA):
            return _pending(node, "WaitingForNode", waiting_for=pending)
        gates = [other.gate.expression for other in before if other.gate is not None]
        if unmet := first_unmet(node.inflow, self._evaluator):
            gates.append(unmet.expression)
        if gates:
            return self._frozen(node, "Gated", tuple(gates))
        if settling := tuple(other.node.id for other in before if other.settling):
            return self._frozen(node, "WaitingForNode", settling)
        return None

    def _frozen(self, node: CompiledNode, reason: str, waiting_for: tuple[str, ...]) -> NodeResult:
        """Return the result of a node whose object must not be changed; an existing object is still observed."""
        own = self._own_object(node)
        if own is None or _terminating(own):
            return _pending(node, reason, waiting_for=waiting_for)
        return self._observe(node, "template", own)

    def _own_object(self, node: CompiledNode) -> JsonObject | None:
        key = literal_key(node, self._identity, self._situation.kinds)
        if key is None:
            return self._own.get(node.id.lower())
        live = self._observed.get(key)
        return live if live is not None and self._is_ours(live) else None

    def _resolved(self, node: CompiledNode) -> NodeResult:
        """Return the result of a node that may act: first `includeWhen`, then the object that it makes or reads."""
        kind = node.declaration.kind
        if unmet := first_unmet(node.include_when, self._evaluator):
            if unmet.missing:
                return _pending(node, "WaitingForData", waiting_for=(unmet.missing,))
            if unmet.failure:
                return NodeResult(node, kind, "Error", "ExpressionError", f"includeWhen: {unmet}")
            return NodeResult(node, kind, "Excluded", "IncludeWhen", f"{unmet.expression} is false")
        try:
            body = cast("JsonObject", node.body.render(self._evaluator))
            if kind == "watch":
                return self._watch(node, body)
            key = identify(body, self._identity, self._situation.kinds)
            return self._template(node, body, key) if kind == "template" else self._reference(node, key)
        except Unrenderable as error:
            if error.missing is not None:
                return _pending(node, "WaitingForData", waiting_for=(error.missing,))
            return NodeResult(node, kind, "Error", "ExpressionError", error.message)
        except UnservedKind as error:
            return _pending(node, "KindNotInstalled", message=str(error))
        except (Unidentified, SelectorError) as error:
            return NodeResult(node, kind, "Error", "InvalidObject", str(error))

    def _reference(self, node: CompiledNode, key: ObjectKey, *, reason: str | None = None) -> NodeResult:
        self.reads.add(key)
        live = self._observed.get(key)
        if live is None:
            return replace(_pending(node, "TargetMissing", message=f"{key} does not exist"), kind="ref")
        return self._observe(node, "ref", live, reason=reason)

    def _watch(self, node: CompiledNode, body: JsonObject) -> NodeResult:
        metadata = body.get("metadata", {})
        # A collection has no name; one is filled in so that `identify` can determine its kind and namespace.
        key = identify({**body, "metadata": {"name": node.id}}, self._identity, self._situation.kinds)
        requirements = parse_selector(body.get("selector", metadata.get("selector", {})))
        selection = Selection(key.resource, metadata.get("namespace"), requirements)
        self.selections.add(selection)
        items = self._observed.select(selection)
        outcome = self._observe(node, "watch", items)
        if node.ready_when and not items and outcome.state == "Ready":
            return replace(outcome, state="NotReady", reason="NoMatches", message="no object is selected")
        return outcome

    def _template(self, node: CompiledNode, body: JsonObject, key: ObjectKey) -> NodeResult:
        live = self._observed.get(key)
        self.reads.add(key)
        if node.declaration.ambiguous and self._is_reference(node, key, live):
            return self._reference(node, key, reason="AmbiguousTemplate")
        other = self.claimed.setdefault(key, node.id)
        if other != node.id:
            return NodeResult(node, "template", "Error", "DuplicateKey", f"{key} is already the object of node {other}")
        if live is not None and _terminating(live):
            return _pending(node, "Terminating", message=f"{key} is being deleted")
        if live is not None and not self._is_ours(live):
            message = f"{key} was made by someone else and is left as it is; the node goes on when it is deleted"
            return NodeResult(node, "template", "Conflict", "ForeignObject", message)
        desired = desired_object(node, body, key, self._identity)
        applied = live is not None and _annotation(live, TEMPLATE_HASH) == desired.hash
        if live is not None and applied and not self._drifted(live, desired):
            self.made.add(node.id)
            return self._observe(node, "template", live)
        failure = self._situation.failures.get(node.id)
        if failure and failure.hash == desired.hash and (failure.retry_at is None or self._now < failure.retry_at):
            self.moments += [failure.retry_at] if failure.retry_at else []
            return NodeResult(node, "template", failure.state, failure.reason, failure.message, object=live)
        self.applies.append(Apply(node, desired, force=applied))
        if live is None:
            return replace(_pending(node, "WaitingForNode", message=f"{key} is being created"), settling=True)
        return replace(self._observe(node, "template", live), settling=True)

    def _is_reference(self, node: CompiledNode, key: ObjectKey, live: JsonObject | None) -> bool:
        owner = (key.resource.api_version, key.resource.kind, key.name)
        exists = live is not None and not self._is_ours(live)
        return exists or node.id in self._situation.references or owner in self._identity.owners

    def _drifted(self, live: JsonObject, desired: Desired) -> bool:
        if covers(live, desired.object):
            return False
        return self._situation.accepted.get(desired.key) != content_hash(applied_part(live, desired.object))

    def _is_ours(self, live: JsonObject) -> bool:
        return is_owned_by(live, self._identity.uid)

    def _observe(
        self, node: CompiledNode, kind: NodeKind, value: JsonObject | list[JsonObject], *, reason: str | None = None
    ) -> NodeResult:
        """Return the result of a node with the data `value`.

        From here on the expressions of other nodes can read `value`. The node's own `readyWhen` and outflow gate are
        evaluated now, because they read it, too.
        """
        self._evaluator.scope[node.id] = value
        outcome = NodeResult(node, kind, "Ready", reason, object=value if isinstance(value, dict) else None)
        if unmet := first_unmet(node.ready_when, self._evaluator):
            outcome = replace(outcome, state="NotReady", reason="NotReady", message=str(unmet))
        return replace(outcome, gate=first_unmet(node.outflow, self._evaluator))


def _pending(
    node: CompiledNode, reason: str, *, message: str | None = None, waiting_for: tuple[str, ...] = ()
) -> NodeResult:
    return NodeResult(node, node.declaration.kind, "Pending", reason, message, waiting_for=waiting_for)


def _ids(outcomes: list[NodeResult], states: frozenset[NodeState]) -> tuple[str, ...]:
    return tuple(outcome.node.id for outcome in outcomes if outcome.state in states)


def _terminating(obj: JsonObject) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _annotation(obj: JsonObject, key: str) -> str | None:
    return (obj["metadata"].get("annotations") or {}).get(key)
