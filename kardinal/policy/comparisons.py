"""The comparisons of an attribute with a literal in an expression: `bundle.upstreamSoakMinutes >= 30`.

They are what a person reads an expression for: the threshold beside the value, the moment at which a soak reaches it,
and the mistake of comparing text with something that is not text. An expression says more than its comparisons; nothing
is decided by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kardinal import cel
from kardinal.cel.references import chain
from kardinal.cel.syntax import Call, Constant, Name, Node, children

__all__ = ["Comparison", "comparisons", "label_mistake", "numbers"]

_LABELS = "bundle.labels."
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`path operator literal`, whichever way round it was written."""

    path: str
    operator: str
    literal: object

    def __str__(self) -> str:
        return f"{self.path} {self.operator} {self.literal_text}"

    @property
    def literal_text(self) -> str:
        """The literal as it is written in an expression."""
        if isinstance(self.literal, bool):
            return str(self.literal).lower()
        return f'"{self.literal}"' if isinstance(self.literal, str) else str(self.literal)


_COMPARISONS: cel.SourceCache[tuple[Comparison, ...]] = cel.SourceCache(characters=128 << 10)
_NUMBERS: cel.SourceCache[frozenset[float]] = cel.SourceCache(characters=128 << 10)


def comparisons(source: str) -> tuple[Comparison, ...]:
    """Those of a valid expression, in source order; raises `CompileError` for another."""
    found = _COMPARISONS.get(source)
    if found is None:
        found = tuple(_comparisons(cel.syntax_of(source)))
        _COMPARISONS.put(source, found)
    return found


def numbers(source: str) -> frozenset[float]:
    """Every number in a valid expression; raises `CompileError` for another."""
    found = _NUMBERS.get(source)
    if found is None:
        found = frozenset(_numbers(cel.syntax_of(source)))
        _NUMBERS.put(source, found)
    return found


def label_mistake(comparison: Comparison) -> str | None:
    """Return what is wrong with the comparison of a label with something that is not text, and the right form.

    None is not among it: it may be an older way to ask whether there is such a label.
    """
    literal = comparison.literal
    if not comparison.path.startswith(_LABELS) or isinstance(literal, str) or literal is None:
        return None
    label = comparison.path.removeprefix(_LABELS)
    path = comparison.path if _PLAIN_NAME.fullmatch(label) else f'{_LABELS.rstrip(".")}["{label}"]'
    written, right = f"{path} {comparison.operator}", f'{path} {comparison.operator} "{comparison.literal_text}"'
    outcome = {"==": "is never true", "!=": "is always true"}.get(comparison.operator, "cannot be answered")
    return f"{written} {comparison.literal_text} {outcome}: labels are strings, write {right}"


def _comparisons(node: Node) -> Iterator[Comparison]:
    match node:
        case Call(function=operator, arguments=(left, Constant(value=literal))) if operator in _MIRRORED:
            yield from _compared(left, operator, literal)
        case Call(function=operator, arguments=(Constant(value=literal), right)) if operator in _MIRRORED:
            yield from _compared(right, _MIRRORED[operator], literal)
        case _:
            for child in children(node):
                yield from _comparisons(child)


def _compared(node: Node, operator: str, literal: object) -> Iterator[Comparison]:
    path, base, _ = chain(node)
    if isinstance(base, Name) and not base.bound:
        yield Comparison(".".join((base.name, *path)), operator, literal)


def _numbers(node: Node) -> Iterator[float]:
    if isinstance(node, Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield float(node.value)
    for child in children(node):
        yield from _numbers(child)
