"""From syntax to closures, each of which computes one node from a frame.

Closures are built once, so that an evaluation is a chain of plain calls on plain values; a reference such as `a.b.c` is
one closure with a loop of lookups. Three rules differ from Python: `&&` and `||` succeed when any term decides, even
beside a term that fails; missing data and impossible operations are different failures, because a Graph waits for
missing data and stops at an impossible operation; and each operation is paid for before it runs (`budget`), so that no
expression runs without a bound.

A field of null counts as absent: an API server writes null for what is not set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardinal.cel.errors import Absent, EvaluationError, Fault
from kardinal.cel.frames import Evaluate, Frame, not_boolean
from kardinal.cel.functions import CLOCK_FUNCTIONS
from kardinal.cel.library import STANDARD, Library
from kardinal.cel.macros import comprehension
from kardinal.cel.overloads import Function
from kardinal.cel.prices import pay_key
from kardinal.cel.syntax import (
    LIFECYCLE,
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
)
from kardinal.cel.values import NOTHING, Optional, Type, Uint, has_key, type_name
from kardinal.cel.weights import FAILURE

__all__ = ["Evaluate", "Frame", "build"]


def build(node: Node, library: Library = STANDARD) -> Evaluate:
    """Return the closure that computes `node`."""
    return _BUILDERS[type(node)](node, library)


def _constant(node: Constant, library: Library) -> Evaluate:
    value = node.value
    return lambda _: value


def _type(node: TypeName, library: Library) -> Evaluate:
    kind = Type(node.name)
    return lambda _: kind


def _name(node: Name, library: Library) -> Evaluate:
    name = node.name
    position = node.position
    if node.bound:
        return lambda frame: frame.bound[name]

    def evaluate(frame: Frame) -> object:
        try:
            return frame.scope[name]
        except KeyError:
            raise Absent(name, position=position) from None

    return evaluate


def _access(node: Select | Index, library: Library) -> Evaluate:
    """Return a chain of fields over one base, walked in one loop."""
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
    path = node.text
    position = node.position
    if isinstance(base, Name) and not base.bound and hops[0][0] in LIFECYCLE:
        (field, optional), *hops = hops
        start = _lifecycle(f"{base.name}.{field}", position, optional=optional)
    elif isinstance(base, Name) and not base.bound:
        start = _root(base, path, soft=hops[0][1])
    else:
        start = build(base, library)
    if not hops:
        return start

    def evaluate(frame: Frame) -> object:
        value = start(frame)
        soft = False
        for name, optional in hops:
            if type(value) is Optional:
                if not value.present:
                    return NOTHING
                value = value.value
                soft = True
            soft = soft or optional
            if type(value) is dict and name in value:
                value = value[name]
            elif value is not None and type(value) is not dict:
                raise Fault("type", f"`{path}`: {type_name(value)} has no fields", position)
            elif soft:
                return NOTHING
            else:
                raise Absent(path, name, position)
        return Optional(value) if soft else value

    return evaluate


def _lifecycle(name: str, position: int, *, optional: bool) -> Evaluate:
    """Return what a Graph says of a node: `a.ready()`, or an optional of it in `a.ready().orValue(…)`."""

    def evaluate(frame: Frame) -> object:
        if name in frame.scope:
            return Optional(frame.scope[name]) if optional else frame.scope[name]
        if optional:
            return NOTHING
        raise Absent(name, position=position)

    return evaluate


def _root(base: Name, path: str, *, soft: bool) -> Evaluate:
    """Return the start of `a.b`, or of `a.?b`.

    With `a.?b`, a missing `a` is no error either.
    """
    name = base.name
    position = base.position

    def evaluate(frame: Frame) -> object:
        try:
            return frame.scope[name]
        except KeyError:
            if soft:
                return NOTHING
            raise Absent(path, position=position) from None

    return evaluate


def _index(node: Index, library: Library) -> Evaluate:
    if isinstance(node.key, Constant) and isinstance(node.key.value, str):
        return _access(node, library)
    operand = build(node.operand, library)
    key = build(node.key, library)
    optional = node.optional
    path = node.text
    position = node.position

    def evaluate(frame: Frame) -> object:
        container: Any = operand(frame)
        index: Any = key(frame)
        soft = optional
        if type(container) is Optional:
            if not container.present:
                return NOTHING
            container = container.value
            soft = True
        if type(container) is list and _is_whole(index):
            index = int(index)
            found = 0 <= index < len(container)
        elif type(container) is dict and type(index) in _INDEXES:
            pay_key(frame.budget, index, container)
            found = has_key(container, index)
        elif container is None:
            found = False
        else:
            raise Fault(
                "type",
                f"`{path}`: {type_name(container)} cannot be indexed by {type_name(index)}",
                position,
            )
        if found:
            return Optional(container[index]) if soft else container[index]
        if soft:
            return NOTHING
        raise Absent(path, index, position)

    return evaluate


def _is_whole(index: object) -> bool:
    """Return whether a list may be indexed by a number: one without a fraction."""
    return type(index) in (int, Uint) or (type(index) is float and index.is_integer())


def _has(node: Has, library: Library) -> Evaluate:
    operand = build(node.operand, library)
    name = node.field
    path = node.text
    position = node.position

    def evaluate(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is Optional:
            value = value.value
        if type(value) is dict:
            return name in value
        if value is None:
            return False
        raise Fault("type", f"`{path}`: {type_name(value)} has no fields", position)

    return evaluate


def _call(node: Call, library: Library) -> Evaluate:
    name = node.function
    position = node.position if name[0].isalpha() and name != "in" else node.anchor
    if name in CLOCK_FUNCTIONS:
        return lambda frame: frame.now
    function = library.functions[name]
    price = library.prices.get(name)
    arguments = tuple(build(argument, library) for argument in node.arguments)
    if name in ("or", "orValue"):
        return _alternative(name, position, function, arguments)

    def evaluate(frame: Frame) -> object:
        operands = [argument(frame) for argument in arguments]
        if price is not None:
            price(frame.budget, *operands)
        return function(name, position, operands)

    return evaluate


def _alternative(name: str, position: int, function: Function, arguments: tuple[Evaluate, ...]) -> Evaluate:
    """Return the closure of `a.or(b)` or `a.orValue(b)`, which computes `b` only if `a` has no value."""
    operand, other = arguments

    def evaluate(frame: Frame) -> object:
        optional = operand(frame)
        if type(optional) is Optional and optional.present:
            return optional if name == "or" else optional.value
        return function(name, position, [optional, other(frame)])

    return evaluate


def _logical(node: Logical, library: Library) -> Evaluate:
    terms = tuple(build(term, library) for term in node.terms)
    decisive = not node.conjunction
    operator = "&&" if node.conjunction else "||"
    position = node.position

    def evaluate(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for term in terms:
            try:
                value = term(frame)
            except EvaluationError as error:
                if isinstance(error, Fault) and error.kind == "limit":
                    raise
                frame.budget.spend(FAILURE)
                failure = failure or error
                continue
            if value is decisive:
                return decisive
            if type(value) is not bool:
                failure = failure or not_boolean(operator, value, position)
        if failure is not None:
            raise failure
        return not decisive

    return evaluate


def _conditional(node: Conditional, library: Library) -> Evaluate:
    condition = build(node.condition, library)
    then = build(node.then, library)
    otherwise = build(node.otherwise, library)
    position = node.condition.position

    def evaluate(frame: Frame) -> object:
        chosen = condition(frame)
        if type(chosen) is not bool:
            raise not_boolean("? :", chosen, position)
        return then(frame) if chosen else otherwise(frame)

    return evaluate


def _list(node: ListLiteral, library: Library) -> Evaluate:
    items = tuple(build(item, library) for item in node.items)
    if not node.optionals:
        return lambda frame: [item(frame) for item in items]
    places = [item.position if index in node.optionals else None for index, item in enumerate(node.items)]

    def evaluate(frame: Frame) -> list[object]:
        result: list[object] = []
        for item, position in zip(items, places, strict=True):
            value = item(frame)
            if position is not None:
                optional = _optional(value, position)
                if not optional.present:
                    continue
                value = optional.value
            result.append(value)
        return result

    return evaluate


def _optional(value: object, position: int) -> Optional:
    if type(value) is not Optional:
        raise Fault("type", f"`?` needs an optional such as `a.?b`, not {type_name(value)}", position)
    return value


def _map(node: MapLiteral, library: Library) -> Evaluate:
    entries = tuple(
        (build(key, library), build(value, library), value.position if index in node.optionals else None)
        for index, (key, value) in enumerate(node.entries)
    )
    position = node.position

    def evaluate(frame: Frame) -> dict[object, object]:
        result: dict[object, object] = {}
        for key, value, place in entries:
            name = key(frame)
            if type(name) is str:
                frame.budget.spend(len(name) >> 6)
            if type(name) not in _KEYS or name in result:
                raise Fault("type", "the keys of a map must be distinct: strings, whole numbers or booleans", position)
            content = value(frame)
            if place is not None:
                optional = _optional(content, place)
                if not optional.present:
                    continue
                content = optional.value
            result[name] = content
        return result

    return evaluate


def _comprehension(node: Comprehension, library: Library) -> Evaluate:
    transform = build(node.transform, library) if node.transform else None
    return comprehension(node, build(node.operand, library), build(node.body, library), transform)


_KEYS = frozenset({str, int, Uint, bool})
"""The types of the keys of a map."""

_INDEXES = frozenset({*_KEYS, float})
"""The types of what a map may be asked for; equal numbers of different types are one key."""

_BUILDERS: dict[type, Callable[[Any, Library], Evaluate]] = {
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
