"""The comparisons of an attribute with a literal in an expression: `bundle.upstreamSoakMinutes >= 30`.

They serve messages and hints: the threshold beside the value, the moment at which a soak reaches the threshold, and a
warning about a comparison of text with another type. No gate is decided by them, because an expression can contain more
than comparisons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kardinal import cel
from kardinal.cel.references import chain
from kardinal.cel.syntax import Call, Constant, Index, Logical, Name, Node, Select, children

__all__ = ["Comparison", "comparisons", "label_mistake", "numbers", "requirements"]

_LABELS = "bundle.labels."
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison in the order `path operator literal`: `30 <= a.b` is stored as `a.b >= 30`."""

    path: str
    operator: str
    literal: object

    def __str__(self) -> str:
        return f"{self.path} {self.operator} {self.literal_text}"

    @property
    def literal_text(self) -> str:
        """The literal in the notation of an expression, such as `true` or `"hotfix"`."""
        if isinstance(self.literal, bool):
            return str(self.literal).lower()
        return f'"{self.literal}"' if isinstance(self.literal, str) else str(self.literal)


_COMPARISONS: cel.SourceCache[tuple[Comparison, ...]] = cel.SourceCache(characters=128 << 10)
_NUMBERS: cel.SourceCache[frozenset[float]] = cel.SourceCache(characters=128 << 10)


def comparisons(source: str) -> tuple[Comparison, ...]:
    """Return the comparisons in a valid expression, in source order; raises `CompileError` if it is invalid."""
    found = _COMPARISONS.get(source)
    if found is None:
        found = tuple(_comparisons(cel.syntax_of(source)))
        _COMPARISONS.put(source, found)
    return found


def numbers(source: str) -> frozenset[float]:
    """Return every number in a valid expression; raises `CompileError` if it is invalid."""
    found = _NUMBERS.get(source)
    if found is None:
        found = frozenset(_numbers(cel.syntax_of(source)))
        _NUMBERS.put(source, found)
    return found


def requirements(source: str) -> list[Comparison]:
    """Return the comparisons that must hold for a valid expression to be true, in source order.

    `!schedule.isWeekend && schedule.hour >= 9` needs `schedule.isWeekend == false` and `schedule.hour >= 9`. Only the
    terms of an `&&` are needed whatever the others are, so that other parts of an expression are left out. Raises
    `CompileError` if the expression is invalid.
    """
    return list(_needed(cel.syntax_of(source)))


def label_mistake(comparison: Comparison) -> str | None:
    """Explain the comparison of a label with a literal that is not text, with the right form; None if it is right.

    A comparison with `null` is allowed: it is an older way to ask whether the label exists.
    """
    literal = comparison.literal
    if not comparison.path.startswith(_LABELS) or isinstance(literal, str) or literal is None:
        return None
    label = comparison.path.removeprefix(_LABELS)
    path = comparison.path if _PLAIN_NAME.fullmatch(label) else f'{_LABELS.rstrip(".")}["{label}"]'
    written = f"{path} {comparison.operator}"
    right = f'{path} {comparison.operator} "{comparison.literal_text}"'
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


def _needed(node: Node) -> Iterator[Comparison]:
    match node:
        case Logical(conjunction=True, terms=terms):
            for term in terms:
                yield from _needed(term)
        case Call(function="!", arguments=(Select() | Index() as operand,)):
            yield from _compared(operand, "==", False)
        case Call(function=operator) if operator in _MIRRORED:
            yield from _comparisons(node)
        case Select() | Index():
            yield from _compared(node, "==", True)


def _numbers(node: Node) -> Iterator[float]:
    if isinstance(node, Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield float(node.value)
    for child in children(node):
        yield from _numbers(child)
