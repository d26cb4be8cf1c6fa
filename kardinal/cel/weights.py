"""The steps that each node of an expression costs by itself, whatever its data.

What depends on data is priced by `prices`, and by the comprehensions themselves. The figures are the dearest that were
measured for a node with its operands left out, failing operands included.
"""

from __future__ import annotations

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

__all__ = ["FAILURE", "ITEM", "ITEM_MEMORY", "weight"]

FAILURE = 30
"""A failure that `&&`, `||`, `all` or `exists` holds back until it knows whether another term decides."""

ITEM = 6
"""One turn of a comprehension beside its body."""

ITEM_MEMORY = 72
"""Bytes: a pair, and its place in a list."""

_WEIGHTS: dict[type, int] = {
    Constant: 1,
    TypeName: 1,
    Name: 2,
    Select: 4,
    Index: 6,
    Has: 6,
    Call: 14,
    Logical: 6,
    Conditional: 3,
    Comprehension: 40,
    ListLiteral: 4,
    MapLiteral: 4,
}
_ENTRY = 3
"""A term of `&&` and `||`, an item of a list, an entry of a map."""


def weight(node: Node) -> int:
    """Return the steps of one evaluation of `node`, each comprehension in it turning once."""
    below = list(children(node))
    entries = len(below) if isinstance(node, Logical | ListLiteral | MapLiteral) else 0
    return _WEIGHTS[type(node)] + _ENTRY * entries + sum(map(weight, below))
