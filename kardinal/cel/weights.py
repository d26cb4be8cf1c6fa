"""The steps that each node of an expression costs by itself, whatever its data.

Costs that depend on data are counted by `prices` and by the comprehensions. The figures are the highest measured costs
of a node without its operands, including the cases in which an operand fails.
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
"""The steps of a failure that `&&`, `||`, `all` or `exists` keeps until it knows whether another term decides."""

ITEM = 6
"""The steps of one element of a comprehension besides its body."""

ITEM_MEMORY = 72
"""Bytes of one element in the result of a comprehension."""

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
"""The steps of a term of `&&` and `||`, of an item of a list, and of an entry of a map."""


def weight(node: Node) -> int:
    """Return the steps of one evaluation of `node`, each comprehension in it turning once."""
    below = list(children(node))
    entries = len(below) if isinstance(node, Logical | ListLiteral | MapLiteral) else 0
    return _WEIGHTS[type(node)] + _ENTRY * entries + sum(map(weight, below))
