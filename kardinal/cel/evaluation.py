"""From syntax to closures, each of which computes one node from a frame.

Building closures once makes evaluation a chain of plain calls on plain values; a reference of any depth is one closure
with a loop of lookups. Three rules differ from Python's instincts: `&&` and `||` succeed when any term decides, even
beside a term that fails; absent data and impossible operations are different failures, because a Graph waits for the
one and stops at the other; and every comprehension pays for its body before running it, so that no expression, however
nested, runs away.

A field of null counts as absent: an API server writes null for what is not set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kardinal.cel.errors import Absent, EvaluationError, Fault
from kardinal.cel.functions import CLOCK_FUNCTIONS, FUNCTIONS
from kardinal.cel.syntax import (
    Call,
    Comprehension,
    Conditional,
    Constant,
    Has,
    Index,
    ListLiteral,
    Logical,
    MapLiteral,
    Name,
    Node,
    Select,
    TypeName,
    children,
)
from kardinal.cel.values import NOTHING, Optional, Type, type_name

__all__ = ["STEP_LIMIT", "Evaluate", "Frame", "build"]

STEP_LIMIT = 100_000
"""Syntax nodes that the comprehensions of one evaluation may visit (graph.md 2.14)."""


@dataclass(slots=True)
class Frame:
    """What one evaluation sees."""

    scope: Mapping[str, object]
    now: datetime
    bound: dict[str, object] = field(default_factory=dict)
    steps: int = 0


Evaluate = Callable[[Frame], object]


def build(node: Node) -> Evaluate:
    """The closure that computes `node`."""
    return _BUILDERS[type(node)](node)


def _constant(node: Constant) -> Evaluate:
    value = node.value
    return lambda _: value


def _type(node: TypeName) -> Evaluate:
    kind = Type(node.name)
    return lambda _: kind


def _name(node: Name) -> Evaluate:
    name = node.name
    if node.bound:
        return lambda frame: frame.bound[name]

    def evaluate(frame: Frame) -> object:
        try:
            return frame.scope[name]
        except KeyError:
            raise Absent(name) from None

    return evaluate


def _access(node: Select | Index) -> Evaluate:
    """A chain of fields over one base, walked in one loop."""
    hops: list[tuple[str, bool]] = []
    base: Node = node
    while True:
        match base:
            case Select(operand=operand, field=name, optional=optional):
                hops.append((name, optional))
                base = operand
            case Index(operand=operand, key=Constant(value=str(name)), optional=optional):
                hops.append((name, optional))
                base = operand
            case _:
                break
    hops.reverse()
    path, position = node.text, node.position
    start = _root(base, path, soft=hops[0][1]) if isinstance(base, Name) and not base.bound else build(base)

    def evaluate(frame: Frame) -> object:
        value = start(frame)
        soft = False
        for name, optional in hops:
            if type(value) is Optional:
                if not value.present:
                    return NOTHING
                value, soft = value.value, True
            soft = soft or optional
            if type(value) is dict and name in value:
                value = value[name]
            elif value is not None and type(value) is not dict:
                raise Fault("type", f"`{path}`: {type_name(value)} has no fields (at column {position + 1})")
            elif soft:
                return NOTHING
            else:
                raise Absent(path)
        return Optional(value) if soft else value

    return evaluate


def _root(base: Name, path: str, *, soft: bool) -> Evaluate:
    """The start of `a.b`, or of `a.?b`: that `a` itself is not in scope is one of the cases the optional is for."""
    name = base.name

    def evaluate(frame: Frame) -> object:
        try:
            return frame.scope[name]
        except KeyError:
            if soft:
                return NOTHING
            raise Absent(path) from None

    return evaluate


def _index(node: Index) -> Evaluate:
    if isinstance(node.key, Constant) and isinstance(node.key.value, str):
        return _access(node)
    operand, key = build(node.operand), build(node.key)
    optional, path, position = node.optional, node.text, node.position

    def evaluate(frame: Frame) -> object:
        container: Any = operand(frame)
        index: Any = key(frame)
        soft = optional
        if type(container) is Optional:
            if not container.present:
                return NOTHING
            container, soft = container.value, True
        if type(container) is list and type(index) is int:
            found = 0 <= index < len(container)
        elif type(container) is dict and type(index) in (str, int):
            found = index in container
        elif container is None:
            found = False
        else:
            raise Fault(
                "type",
                f"`{path}`: {type_name(container)} cannot be indexed by {type_name(index)} (at column {position + 1})",
            )
        if found:
            return Optional(container[index]) if soft else container[index]
        if soft:
            return NOTHING
        raise Absent(path)

    return evaluate


def _has(node: Has) -> Evaluate:
    operand, name, path, position = build(node.operand), node.field, node.text, node.position

    def evaluate(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is Optional:
            value = value.value
        if type(value) is dict:
            return name in value
        if value is None:
            return False
        raise Fault("type", f"`{path}`: {type_name(value)} has no fields (at column {position + 1})")

    return evaluate


def _call(node: Call) -> Evaluate:
    name, position = node.function, node.position
    if name in CLOCK_FUNCTIONS:
        return lambda frame: frame.now
    function, arguments = FUNCTIONS[name], tuple(map(build, node.arguments))

    def evaluate(frame: Frame) -> object:
        return function(name, position, [argument(frame) for argument in arguments])

    return evaluate


def _logical(node: Logical) -> Evaluate:
    terms = tuple(map(build, node.terms))
    decisive = not node.conjunction
    operator, position = "&&" if node.conjunction else "||", node.position

    def evaluate(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationError as error:
                if isinstance(error, Fault) and error.kind == "limit":
                    raise
                failure = failure or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                failure = failure or _not_boolean(operator, value, position)
        if failure is not None:
            raise failure
        return not decisive

    return evaluate


def _not_boolean(what: str, value: object, position: int) -> Fault:
    return Fault("type", f"`{what}` needs bool, not {type_name(value)} (at column {position + 1})")


def _conditional(node: Conditional) -> Evaluate:
    condition, then, otherwise = build(node.condition), build(node.then), build(node.otherwise)
    position = node.condition.position

    def evaluate(frame: Frame) -> object:
        chosen = condition(frame)
        if type(chosen) is not bool:
            raise _not_boolean("? :", chosen, position)
        return then(frame) if chosen else otherwise(frame)

    return evaluate


def _list(node: ListLiteral) -> Evaluate:
    items = tuple(map(build, node.items))
    return lambda frame: [item(frame) for item in items]


def _map(node: MapLiteral) -> Evaluate:
    entries = tuple((build(key), build(value)) for key, value in node.entries)
    position = node.position

    def evaluate(frame: Frame) -> dict[object, object]:
        result: dict[object, object] = {}
        for key, value in entries:
            name = key(frame)
            if type(name) not in (str, int) or name in result:
                raise Fault("type", f"the keys of a map must be distinct strings or ints (at column {position + 1})")
            result[name] = value(frame)
        return result

    return evaluate


def _size(node: Node) -> int:
    return 1 + sum(map(_size, children(node)))


def _comprehension(node: Comprehension) -> Evaluate:
    operand, body = build(node.operand), build(node.body)
    transform = build(node.transform) if node.transform else None
    macro, variable, position, cost = node.macro, node.variable, node.position, _size(node)

    def verdicts(frame: Frame, items: list[object]) -> list[tuple[object, bool | EvaluationError]]:
        """Each item with the truth of the body, or with its failure; ends early once the macro is decided."""
        seen: list[tuple[object, bool | EvaluationError]] = []
        for item in items:
            frame.bound[variable] = item
            try:
                truth = body(frame)
                if type(truth) is not bool:
                    raise _not_boolean(macro, truth, position)
            except EvaluationError as error:
                if macro not in ("all", "exists") or (isinstance(error, Fault) and error.kind == "limit"):
                    raise
                seen.append((item, error))
                continue
            seen.append((item, truth))
            if (macro == "all" and not truth) or (macro == "exists" and truth):
                break
        return seen

    def evaluate(frame: Frame) -> object:
        container = operand(frame)
        if type(container) is dict:
            items = list(container)
        elif type(container) is list:
            items = container
        else:
            raise Fault(
                "type", f"`{macro}` needs a list or a map, not {type_name(container)} (at column {position + 1})"
            )
        frame.steps += cost * len(items)
        if frame.steps > STEP_LIMIT:
            raise Fault("limit", f"the expression takes more than {STEP_LIMIT} steps")
        outer = frame.bound
        frame.bound = dict(outer)
        try:
            if macro == "map" and transform is None:
                return _mapped(frame, variable, items, body)
            seen = verdicts(frame, items)
            if macro == "map" and transform is not None:
                return _mapped(frame, variable, [item for item, truth in seen if truth], transform)
        finally:
            frame.bound = outer
        return _conclusion(macro, seen)

    return evaluate


def _mapped(frame: Frame, variable: str, items: list[object], transform: Evaluate) -> list[object]:
    result = []
    for item in items:
        frame.bound[variable] = item
        result.append(transform(frame))
    return result


def _conclusion(macro: str, seen: list[tuple[object, bool | EvaluationError]]) -> object:
    if macro == "filter":
        return [item for item, truth in seen if truth]
    if macro == "exists_one":
        return sum(truth is True for _, truth in seen) == 1
    decisive = macro == "exists"
    if any(truth is decisive for _, truth in seen):
        return decisive
    for _, truth in seen:
        if isinstance(truth, EvaluationError):
            raise truth
    return not decisive


_BUILDERS: dict[type, Callable[[Any], Evaluate]] = {
    Constant: _constant,
    TypeName: _type,
    Name: _name,
    Select: _access,
    Index: _index,
    Has: _has,
    Call: _call,
    Logical: _logical,
    Conditional: _conditional,
    Comprehension: _comprehension,
    ListLiteral: _list,
    MapLiteral: _map,
}
