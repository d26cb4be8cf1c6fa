"""One pass over a Graph: from the observed objects to the state of each node, and the applies and deletions to make.

A pass is a pure function of the compiled graph, the observed objects and the time. No state is kept between passes, so
that a restart, a lost event or a doubled event has no effect on the result. Two things are kept to save work: the
failures of expressions that exceeded their budget, and the results of nodes at rest, each with all that it was made of.
The rules:

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

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, cast

from kardinal import cel
from kardinal.graph.compile import CompiledForEach, CompiledGraph, CompiledNode
from kardinal.graph.conditions import NodeCondition, first_unmet, next_flip
from kardinal.graph.desired import (
    Desired,
    Unidentified,
    UnservedKind,
    desired_object,
    desired_patch,
    identify,
    literal_key,
)
from kardinal.graph.earlier import EarlierResults
from kardinal.graph.evaluator import Evaluator
from kardinal.graph.identity import ObjectKey, is_owned_by, node_of
from kardinal.graph.prune import candidates_of, marked_objects, patience_ends, plan_of
from kardinal.graph.results import (
    FAILED,
    WITHOUT_DATA,
    NoList,
    discreet,
    ids_in,
    is_terminating,
    items_of,
    pending,
    refused_outside,
    rendered,
    selection_of,
    timed,
    unobserved,
)
from kardinal.graph.selection import Selection
from kardinal.graph.template import Unrenderable
from kardinal.graph.walk_types import (
    SEVERITY,
    Apply,
    NodeResult,
    Prune,
    Remembered,
    Seen,
    Unobserved,
    Walk,
    WalkInput,
)
from kardinal.objects import SECRET, JsonObject, NodeKind
from kardinal.objects.applied import applied_part, content_hash, covers
from kardinal.objects.label_selectors import SelectorError

__all__ = ["walk", "walking"]

_WRITING: frozenset[NodeKind] = frozenset(["template", "patch"])


def walk(graph: CompiledGraph, situation: WalkInput) -> Walk:
    """Return the result of one pass over every node, dependencies first."""
    steps = walking(graph, situation)
    while True:
        try:
            next(steps)
        except StopIteration as finished:
            return cast("Walk", finished.value)


def walking(graph: CompiledGraph, situation: WalkInput) -> Generator[Callable[[], Seen], None, Walk]:
    """Make one pass that can pause after each node and item: a thousand of them with costly expressions take long.

    The observed objects may change during a pause, including those that were read already. The generator therefore
    yields the objects and selections that were read so far, and a caller that pauses must start another pass when one
    of them changes.
    """
    walker = _Walker(situation)
    for node in graph.nodes:
        if node.declaration.finalizes is None:
            for _ in walker.visit(node):
                yield walker.seen
    for _ in walker.prune(graph):
        yield walker.seen
    if (moment := patience_ends(walker.prunes)) is not None:
        walker.moments.append(moment)
    return Walk(
        tuple(walker.outcomes.values()),
        tuple(walker.applies),
        walker.prunes,
        min(walker.moments, default=None),
        frozenset(walker.reads),
        frozenset(walker.selections),
        frozenset(walker.unserved),
        tuple(walker.evaluated),
        walker.expression_seconds,
    )


class _Walker:
    def __init__(self, situation: WalkInput) -> None:
        self._situation = situation
        self._identity = situation.identity
        self._observed = situation.observed
        self._now = situation.now
        self._evaluator = Evaluator(now=situation.now, overruns=situation.overruns)
        self._marked = marked_objects(situation.observed)
        self.outcomes: dict[str, NodeResult] = {}
        self._earlier = EarlierResults(situation, self.outcomes)
        self.evaluated: list[NodeResult] = []
        self.claimed: dict[ObjectKey, str] = {}
        self.made: set[str] = set()
        self.applies: list[Apply] = []
        self.prunes: tuple[Prune, ...] = ()
        self.moments: list[datetime] = []
        self.reads: set[ObjectKey] = set()
        self.selections: set[Selection] = set()
        self._selected: dict[str, Selection] = {}
        self.unserved: set[tuple[str, str]] = set()
        self._secret: set[str] = set()

    @property
    def expression_seconds(self) -> float:
        return self._evaluator.seconds

    @cached_property
    def _own(self) -> Mapping[str, list[JsonObject]]:
        """The objects of the Graph, by the id in lower case of the node that their labels name."""
        own: dict[str, list[JsonObject]] = {}
        for _, obj, _ in self._marked:
            if (node := node_of(obj, self._identity)) is not None:
                own.setdefault(node, []).append(obj)
        return own

    def seen(self) -> Seen:
        return Seen(frozenset(self.reads), frozenset(self.selections))

    def visit(self, node: CompiledNode) -> Generator[None, None, None]:
        """Note the result of a node; yields where the pass may pause: after each item of forEach, and at the end."""
        earlier = self._earlier.of(node)
        if earlier is not None and self._repeat(earlier):
            yield
            return
        self._evaluator.begin(node.id, depends_on=node.hard)
        try:
            if self._situation.deleting and node.declaration.kind in _WRITING:
                outcome: NodeResult | None = self._leaving(node)
            else:
                outcome = self._kept_back(node) or self._left_out(node)
        except Unobserved as error:
            outcome = unobserved(node, error)
        resolved = outcome is None
        if outcome is None:
            outcome = yield from self._resolved(node)
        outcome = self._concluded(node, outcome)
        literal = literal_key(node, self._identity, self._situation.kinds)
        if literal is not None and outcome.state != "Excluded" and not self._situation.deleting:
            self.claimed.setdefault(literal, node.id)
        self._earlier.forget(node)
        if resolved and node.id not in self._secret and not self._evaluator.exhausted:
            self._earlier.keep(node, outcome, self._selected.get(node.id))
        yield

    def _tell(self, outcome: NodeResult) -> None:
        """Let other nodes read whether a node is ready and updated; nothing of one that waits or is left out."""
        known = outcome.state not in ("Pending", "Excluded")
        self._evaluator.tell(outcome.node.id, (outcome.state == "Ready", outcome.updated) if known else None)

    def _concluded(self, node: CompiledNode, outcome: NodeResult) -> NodeResult:
        """Note the result of a node, and when it may change with time alone."""
        if self._is_confidential(node):
            self._secret.add(node.id)
            outcome = discreet(outcome)
        self.outcomes[node.id] = outcome
        self._tell(outcome)
        self.evaluated.append(outcome)
        self._note_flips(node.include_when, node.inflow)
        if node.for_each is None:
            self._note_flips(node.outflow, node.ready_when, programs=[program for _, program in node.body.programs])
        else:
            self._note_flips(node.for_each.outflow, node.for_each.ready_when, programs=[node.for_each.items])
        if node.declaration.recheck_after is not None:
            self.moments.append(self._now + node.declaration.recheck_after)
        return outcome

    # Deletions, and the hooks that they wait for.

    def prune(self, graph: CompiledGraph) -> Generator[None, None, None]:
        """Note the deletions that may happen now, and the results of hooks; yields where the pass may pause."""
        candidates = candidates_of(
            graph,
            self._identity,
            self._marked,
            goes=self._goes,
            wanted=self.claimed,
            now=self._now,
        )
        plan = plan_of(graph, candidates)
        held: set[str | None] = set()
        for hook in graph.hooks:
            if hook not in plan.hooks:
                self.outcomes[hook.id] = NodeResult(hook, hook.declaration.kind, "Excluded", "Hook")
                continue
            yield from self._visit_hook(hook)
            outcome = self.outcomes[hook.id]
            if outcome.blocks or outcome.settling:
                held.add(hook.declaration.finalizes)
        self.prunes = plan.wave(held)

    def _goes(self, node: CompiledNode) -> bool:
        """Return whether the objects of a node that no node claims are to be deleted."""
        if self._situation.deleting or node.declaration.finalizes is not None or node.id in self.made:
            return True
        return self.outcomes[node.id].state == "Excluded"

    def _leaving(self, node: CompiledNode) -> NodeResult:
        """Return the result of a node of a Graph that is being deleted: its objects are there for hooks to read."""
        if not self._own_objects(node):
            return NodeResult(node, node.declaration.kind, "Excluded", "Deleted")
        return self._frozen(node, "Terminating", ())

    def _visit_hook(self, hook: CompiledNode) -> Generator[None, None, None]:
        """Note the result of a hook that is due."""
        for other in (*hook.hard, *hook.soft):
            self._enter_leaving(other)
        self._evaluator.begin(hook.id, depends_on=hook.hard)
        scope = self._evaluator.scope
        waiting = tuple(other for other in hook.hard if other not in scope or self.outcomes[other].blocks)
        outcome = pending(hook, "WaitingForNode", waiting_for=waiting) if waiting else self._left_out(hook)
        if outcome is None:
            outcome = yield from self._resolved(hook)
        self._concluded(hook, outcome)
        yield

    def _enter_leaving(self, node: str) -> None:
        """Let a hook read the objects of a node that the walk has excluded, as long as they are there."""
        own = self._own.get(node.lower())
        if own and node not in self._evaluator.scope:
            is_list = self.outcomes[node].node.for_each is not None
            self._evaluator.scope[node] = own if is_list else own[0]

    def _repeat(self, earlier: Remembered) -> bool:
        """Give a node its result of an earlier pass, unless its object is that of another node now; return whether."""
        node = earlier.node.id
        outcome = earlier.outcome
        key = earlier.key
        if key is not None:
            if earlier.node.declaration.kind in _WRITING:
                if self.claimed.setdefault(key, node) != node:
                    return False
                self.made.add(node)
            self.reads.add(key)
        if earlier.selection is not None:
            self.selections.add(earlier.selection)
        self._evaluator.scope[node] = outcome.value
        self._evaluator.tell(node, (outcome.state == "Ready", outcome.updated))
        self.outcomes[node] = outcome
        return True

    def _note_flips(self, *conditions: Iterable[NodeCondition], programs: Iterable[cel.Program] = ()) -> None:
        """Note the next times at which the outcome of these may change without a change of data."""
        flips = [next_flip(each, self._evaluator) for each in conditions]
        flips += [self._evaluator.next_flip(program) for program in programs]
        self.moments += [flip for flip in flips if flip is not None]

    def _kept_back(self, node: CompiledNode) -> NodeResult | None:
        """Return the result of a node that its dependencies keep back, or None when the node may act.

        The reasons in the order of their priority: a dependency is excluded, has failed, has no data, or has a closed
        gate.
        """
        before = [self.outcomes[other] for other in node.hard]
        if any(other.state == "Excluded" for other in before):
            return NodeResult(node, node.declaration.kind, "Excluded", "DependencyExcluded")
        if failed := ids_in(before, FAILED):
            return NodeResult(node, node.declaration.kind, "Blocked", "DependencyFailed", waiting_for=failed)
        if waiting := ids_in(before, WITHOUT_DATA):
            return pending(node, "WaitingForNode", waiting_for=waiting)
        gates = [other.gate.expression for other in before if other.gate is not None]
        if unmet := first_unmet(node.inflow, self._evaluator):
            gates.append(unmet.expression)
        if gates:
            return self._frozen(node, "Gated", tuple(gates))
        if settling := tuple(other.node.id for other in before if other.settling):
            return self._frozen(node, "WaitingForNode", settling)
        return None

    def _frozen(self, node: CompiledNode, reason: str, waiting_for: tuple[str, ...]) -> NodeResult:
        """Return the result of a node whose objects must not be changed; existing objects are still observed."""
        own = [obj for obj in self._own_objects(node) if not is_terminating(obj)]
        if not own:
            return pending(node, reason, waiting_for=waiting_for)
        kind = node.declaration.kind
        if node.for_each is None:
            return replace(self._observe(node, kind, own[0]), updated=False)
        outcome = self._all_observed(node, kind, [self._observe(node, kind, obj) for obj in own])
        return replace(outcome, updated=False)

    def _own_objects(self, node: CompiledNode) -> Sequence[JsonObject]:
        key = literal_key(node, self._identity, self._situation.kinds)
        if key is None:
            return self._own.get(node.id.lower(), ())
        live = self._observed.get(key)
        if live is None:
            return []
        mine = self._is_patched(live) if node.declaration.kind == "patch" else self._is_ours(key, live)
        return [live] if mine else []

    def _left_out(self, node: CompiledNode) -> NodeResult | None:
        """Return the result of a node that `includeWhen` leaves out or keeps waiting; None for one that is included."""
        kind = node.declaration.kind
        unmet = first_unmet(node.include_when, self._evaluator)
        if unmet is None:
            return None
        if unmet.missing:
            return pending(node, "WaitingForData", waiting_for=(unmet.missing,))
        if unmet.failure:
            return NodeResult(node, kind, "Error", "ExpressionError", f"includeWhen: {unmet}")
        return NodeResult(node, kind, "Excluded", "IncludeWhen", f"{unmet.expression} is false")

    def _resolved(self, node: CompiledNode) -> Generator[None, None, NodeResult]:
        """Return the result of a node that may act: what it makes, reads or computes."""
        kind = node.declaration.kind
        try:
            if node.for_each is not None:
                return (yield from self._each(node, node.for_each))
            return self._made(node, rendered(node, self._evaluator))
        except Unrenderable as error:
            if error.missing is not None:
                return pending(node, "WaitingForData", waiting_for=(error.missing,))
            return NodeResult(node, kind, "Error", "ExpressionError", error.message)
        except UnservedKind as error:
            self.unserved.add(error.kind)
            return pending(node, "KindNotInstalled", message=str(error))
        except (Unidentified, SelectorError) as error:
            return NodeResult(node, kind, "Error", "InvalidObject", str(error))
        except NoList as error:
            return NodeResult(node, kind, "Error", error.reason, str(error))
        finally:
            if node.for_each is not None:
                self._evaluator.scope.pop(node.for_each.variable, None)

    def _made(self, node: CompiledNode, body: Any) -> NodeResult:
        """Return the result of a node that reads, computes or applies what its rendered body says."""
        try:
            match node.declaration.kind:
                case "def":
                    return self._observe(node, "def", body)
                case "watch":
                    return self._watch(node, body)
                case "ref":
                    return self._reference(node, identify(body, self._identity, self._situation.kinds))
                case "template":
                    return self._template(node, body, identify(body, self._identity, self._situation.kinds))
                case "patch":
                    return self._patch(node, body, identify(body, self._identity, self._situation.kinds))
        except Unobserved as error:
            return unobserved(node, error)

    def _is_confidential(self, node: CompiledNode) -> bool:
        """Return whether a node reads or makes a Secret, or has data of a node that does."""
        return node.id in self._secret or any(other in self._secret for other in (*node.hard, *node.soft))

    # Nodes with forEach.

    def _each(self, node: CompiledNode, for_each: CompiledForEach) -> Generator[None, None, NodeResult]:
        """Return the result of a node that makes an object, or a value, for each item of a list.

        Nothing is applied unless the identities of all objects are known: a half of the list is no list.
        """
        bodies: list[tuple[object, Any]] = []
        for index, item in enumerate(items_of(for_each, self._evaluator)):
            self._enter(node, for_each, index, item)
            bodies.append((item, rendered(node, self._evaluator)))
            yield
        if node.declaration.kind in _WRITING:
            keys = [identify(body, self._identity, self._situation.kinds) for _, body in bodies]
            taken = [key for key in keys if self.claimed.setdefault(key, node.id) != node.id]
            twice = [*taken, *(key for key, times in Counter(keys).items() if times > 1)]
            if twice:
                message = f"{twice[0]} is wanted twice"
                return NodeResult(node, node.declaration.kind, "Error", "DuplicateKey", message)
            self.made.add(node.id)
        results = []
        for index, (item, body) in enumerate(bodies):
            self._enter(node, for_each, index, item)
            results.append(self._made(node, body))
            self._note_flips(node.outflow, node.ready_when, programs=[program for _, program in node.body.programs])
            yield
        return self._all_observed(node, node.declaration.kind, results)

    def _enter(self, node: CompiledNode, for_each: CompiledForEach, index: int, item: object) -> None:
        """Let the expressions of a node read an item of its list, each item with a budget of its own."""
        self._evaluator.begin(f"{node.id}[{index}]")
        self._evaluator.scope[for_each.variable] = item

    def _all_observed(self, node: CompiledNode, kind: NodeKind, results: Sequence[NodeResult]) -> NodeResult:
        """Return the result of a node with forEach from those of its items, and let other nodes read the list."""
        self._evaluator.begin(node.id)
        self._evaluator.scope.pop(node.id, None)
        children = len(results), sum(result.state == "Ready" for result in results)
        worst = next((each for state in SEVERITY for each in results if each.state == state), None)
        settling = any(result.settling for result in results)
        updated = all(result.updated for result in results)
        if worst is not None and worst.state != "NotReady":
            return replace(worst, object=None, gate=None, settling=settling, updated=updated, children=children)
        self._evaluator.scope[node.id] = [result.value for result in results]
        outcome = worst or NodeResult(node, kind, "Ready")
        gate = next((result.gate for result in results if result.gate is not None), None)
        on_list = node.for_each
        if on_list and worst is None and (unmet := first_unmet(on_list.ready_when, self._evaluator)):
            outcome = replace(outcome, state="NotReady", reason="NotReady", message=str(unmet))
        if on_list and gate is None:
            gate = first_unmet(on_list.outflow, self._evaluator)
        return replace(
            outcome, object=None, value=None, gate=gate, settling=settling, updated=updated, children=children
        )

    # What a node reads or applies.

    def _reference(self, node: CompiledNode, key: ObjectKey, *, reason: str | None = None) -> NodeResult:
        self._note_read(node, key)
        live = self._observed.get(key)
        if live is None:
            return replace(pending(node, "TargetMissing", message=f"{key} does not exist"), kind="ref")
        return self._observe(node, "ref", live, reason=reason)

    def _note_read(self, node: CompiledNode, key: ObjectKey) -> None:
        self.reads.add(key)
        if key.resource == SECRET:
            self._secret.add(node.id)

    def _watch(self, node: CompiledNode, body: JsonObject) -> NodeResult:
        selection = selection_of(node, body, self._situation)
        self.selections.add(selection)
        self._selected[node.id] = selection
        if selection.resource == SECRET:
            self._secret.add(node.id)
        items = self._observed.select(selection)
        outcome = self._observe(node, "watch", items)
        if node.ready_when and not items and outcome.state == "Ready":
            return replace(outcome, state="NotReady", reason="NoMatches", message="no object is selected")
        return outcome

    def _template(self, node: CompiledNode, body: JsonObject, key: ObjectKey) -> NodeResult:
        self._note_read(node, key)
        live = self._observed.get(key)
        if node.declaration.ambiguous and self._is_reference(node, key, live):
            return self._reference(node, key, reason="AmbiguousTemplate")
        if key.resource.group in self._situation.reserved and key.resource not in self._situation.free:
            message = f"a Graph of this owner cannot make a {key.resource.kind}: its program makes it"
            return NodeResult(node, "template", "Error", "ReservedKind", message)
        if stopped := refused_outside(node, key, self._situation) or self._taken(node, key, live):
            return stopped
        if live is not None and not self._is_ours(key, live):
            message = f"{key} was made by someone else and is left as it is; the node goes on when it is deleted"
            return NodeResult(node, "template", "Conflict", "ForeignObject", message)
        return self._applied(node, desired_object(node, body, key, self._identity), live)

    def _patch(self, node: CompiledNode, body: JsonObject, key: ObjectKey) -> NodeResult:
        """Return the result of a node that sets fields of an object that is not the Graph's.

        A kind of the program is never patched, not even by the Graph of its owner: its objects decide what is promoted.
        """
        self._note_read(node, key)
        if key.resource.group in self._situation.reserved:
            message = f"a {key.resource.kind} is written by its program alone, and is not patched"
            return NodeResult(node, "patch", "Error", "ReservedKind", message)
        live = self._observed.get(key)
        if taken := self._taken(node, key, live):
            return taken
        if live is None:
            return pending(node, "TargetMissing", message=f"{key} does not exist")
        if self._is_ours(key, live):
            message = f"{key} is made by this Graph: change its template instead"
            return NodeResult(node, "patch", "Conflict", "OwnObject", message)
        desired = desired_patch(node, body, key, self._identity, uid=live["metadata"]["uid"])
        return self._applied(node, desired, live)

    def _taken(self, node: CompiledNode, key: ObjectKey, live: JsonObject | None) -> NodeResult | None:
        """Return the result of a node whose object is that of another node, or is being deleted; None otherwise."""
        other = self.claimed.setdefault(key, node.id)
        if other != node.id:
            message = f"{key} is already the object of node {other}"
            return NodeResult(node, node.declaration.kind, "Error", "DuplicateKey", message)
        if live is not None and is_terminating(live):
            return pending(node, "Terminating", message=f"{key} is being deleted")
        return None

    def _applied(self, node: CompiledNode, desired: Desired, live: JsonObject | None) -> NodeResult:
        """Return the result of a node that wants `desired`, which is applied unless the object is that already."""
        key = desired.key
        kind = node.declaration.kind
        applied = live is not None and desired.is_applied_to(live)
        if live is not None and applied and not self._drifted(live, desired):
            self.made.add(node.id)
            return self._observe(node, kind, live)
        failure = self._situation.failures.get(key)
        if failure and failure.hash == desired.hash and (failure.retry_at is None or self._now < failure.retry_at):
            self.moments += [failure.retry_at] if failure.retry_at else []
            return NodeResult(node, kind, failure.state, failure.reason, failure.message, object=live)
        # A patch takes no field by force: the object is not the Graph's.
        force = kind == "template" and (applied or node.declaration.force)
        confidential = self._is_confidential(node)
        self.applies.append(Apply(node, desired, force=force, correction=applied, confidential=confidential))
        if live is None:
            return replace(pending(node, "WaitingForNode", message=f"{key} is being created"), settling=True)
        return replace(self._observe(node, kind, live), settling=True, updated=False)

    def _is_reference(self, node: CompiledNode, key: ObjectKey, live: JsonObject | None) -> bool:
        owner = (key.resource.api_version, key.resource.kind, key.name)
        exists = live is not None and not self._is_ours(key, live)
        return exists or node.id in self._situation.references or owner in self._identity.owners

    def _drifted(self, live: JsonObject, desired: Desired) -> bool:
        if covers(live, desired.object):
            return False
        return self._situation.accepted.get(desired.key) != content_hash(applied_part(live, desired.object))

    def _is_ours(self, key: ObjectKey, live: JsonObject) -> bool:
        outside = self._situation.outside
        return is_owned_by(live, self._identity.uid) or (outside is not None and outside.owns(key, live))

    def _is_patched(self, live: JsonObject) -> bool:
        return self._identity.patch_marks.node in (live["metadata"].get("labels") or {})

    def _observe(self, node: CompiledNode, kind: NodeKind, value: object, *, reason: str | None = None) -> NodeResult:
        """Return the result of a node with the data `value`.

        From here on the expressions of other nodes can read `value`. The node's own `readyWhen` and outflow gate are
        evaluated now, because they read it, too.
        """
        self._evaluator.scope[node.id] = value
        is_object = kind in ("template", "patch", "ref") and isinstance(value, dict)
        outcome = NodeResult(
            node, kind, "Ready", reason, object=cast("JsonObject", value) if is_object else None, value=value
        )
        if unmet := first_unmet(node.ready_when, self._evaluator):
            outcome = replace(outcome, state="NotReady", reason="NotReady", message=str(unmet))
            outcome, until = timed(outcome, self._situation)
            self.moments += [until] if until is not None else []
        self._evaluator.scope[f"{node.id}.ready()"] = outcome.state == "Ready"
        return replace(outcome, gate=first_unmet(node.outflow, self._evaluator))
