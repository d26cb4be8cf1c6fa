"""The references of an expression, found on its syntax tree.

A reference is a root name with the longest chain of fields that is known without data: `a.l[0].x` reads `a.l`,
`a.m.filter(…)` reads `a.m`, `a["k"]` reads `a.k`. The variable of a comprehension is no reference, even where it
shadows one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kardinal.cel.functions import CLOCK_FUNCTIONS
from kardinal.cel.syntax import Call, Constant, Has, Index, Name, Node, Select, children

__all__ = ["Reference", "chain", "is_volatile", "references"]


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference. It is `soft` if the data may be missing, because the root is only read through `.?` or `[?]`."""

    root: str
    path: tuple[str, ...] = ()
    soft: bool = False

    def __str__(self) -> str:
        return ".".join((self.root, *self.path))


def references(node: Node) -> Iterator[Reference]:
    """Yield every reference below `node`, in source order, with repetitions."""
    path, base, soft = chain(node)
    if isinstance(base, Name):
        if not base.bound:
            yield Reference(base.name, path, soft)
        return
    for child in children(base):
        yield from references(child)


def chain(node: Node) -> tuple[tuple[str, ...], Node, bool]:
    """Return the static fields that `node` selects, their operand, and whether the first of them is optional."""
    fields: list[str] = []
    optional = False
    while True:
        match node:
            case Select(operand=operand, field=field, optional=optional):
                fields.append(field)
                node = operand
            case Index(operand=operand, key=Constant(value=str(field)), optional=optional):
                fields.append(field)
                node = operand
            case Has(operand=operand, field=field):
                optional = False
                fields.append(field)
                node = operand
            case _:
                return tuple(reversed(fields)), node, optional


def is_volatile(node: Node) -> bool:
    """Return whether an expression calls a function of the clock, so that its value may change with time alone."""
    if isinstance(node, Call) and node.function in CLOCK_FUNCTIONS:
        return True
    return any(map(is_volatile, children(node)))
