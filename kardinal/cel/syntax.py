"""The expression as kardinal sees it: a dozen small nodes.

The parse tree wraps every value in twelve levels of precedence; these nodes are the levels with a meaning. The search
for references, the search for time thresholds and evaluation all use this form. `position` is the offset of a node in
the text; `anchor` is the offset of its operator, dot or parenthesis, to which other CEL tools point in their messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

__all__ = [
    "DEPENDENCIES",
    "LIFECYCLE",
    "Call",
    "Comprehension",
    "Conditional",
    "Constant",
    "Has",
    "Index",
    "ListLiteral",
    "Logical",
    "MapLiteral",
    "Name",
    "Node",
    "Select",
    "TypeName",
    "children",
]


LIFECYCLE = frozenset(["ready()", "updated()"])
"""Facts about a node besides its data: `dev.ready()` is the field `ready()` of `dev`; the scope has its value
under the name `dev.ready()`.
"""
DEPENDENCIES = "dependencies()"
"""The name of the list of the data that a node of a Graph depends on."""


@dataclass(frozen=True, slots=True)
class Constant:
    position: int
    value: object


@dataclass(frozen=True, slots=True)
class TypeName:
    """The name of a type as a value, as in `type(x) == string`."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Name:
    position: int
    name: str
    bound: bool
    """Whether a comprehension around it introduces the name."""


@dataclass(frozen=True, slots=True)
class Select:
    """The selection `operand.field`, or `operand.?field`; `text` is the source of the whole chain."""

    position: int
    anchor: int
    operand: Node
    field: str
    optional: bool
    text: str


@dataclass(frozen=True, slots=True)
class Index:
    """The look-up `operand[key]`, or `operand[?key]`."""

    position: int
    anchor: int
    operand: Node
    key: Node
    optional: bool
    text: str


@dataclass(frozen=True, slots=True)
class Has:
    """The macro `has(operand.field)`."""

    position: int
    anchor: int
    operand: Node
    field: str
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """An operator, a function or a method (`member`), whose receiver is simply the first argument."""

    position: int
    anchor: int
    function: str
    arguments: tuple[Node, ...]
    member: bool = False


@dataclass(frozen=True, slots=True)
class Logical:
    """The operator `&&` (`conjunction`) or `||` over any number of terms."""

    position: int
    conjunction: bool
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Conditional:
    position: int
    anchor: int
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Comprehension:
    """A macro that binds a variable, such as `operand.all(variable, body)` or `cel.bind(variable, operand, body)`.

    `second` is the variable of the values where the first one is that of the keys; `transform` follows a filter.
    """

    position: int
    anchor: int
    macro: str
    operand: Node
    variable: str
    second: str | None
    body: Node
    transform: Node | None


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """The list `[a, ?b]`; `optionals` are the indexes of the items with a question mark."""

    position: int
    items: tuple[Node, ...]
    optionals: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class MapLiteral:
    """The map `{"a": b, ?"c": d}`; `optionals` are the indexes of the entries with a question mark."""

    position: int
    entries: tuple[tuple[Node, Node], ...]
    optionals: frozenset[int] = frozenset()


Node = (
    Constant
    | TypeName
    | Name
    | Select
    | Index
    | Has
    | Call
    | Logical
    | Conditional
    | Comprehension
    | ListLiteral
    | MapLiteral
)


def children(node: Node) -> Iterator[Node]:
    """Yield the nodes directly below, in source order."""
    match node:
        case Select(operand=operand) | Has(operand=operand):
            yield operand
        case Index(operand=operand, key=key):
            yield operand
            yield key
        case Call(arguments=nodes) | Logical(terms=nodes) | ListLiteral(items=nodes):
            yield from nodes
        case Conditional(condition=condition, then=then, otherwise=otherwise):
            yield from (condition, then, otherwise)
        case Comprehension(operand=operand, body=body, transform=transform):
            yield operand
            yield body
            if transform is not None:
                yield transform
        case MapLiteral(entries=entries):
            for key, value in entries:
                yield key
                yield value
