"""Find constant arguments that no data makes valid: times, durations and patterns that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kardinal import cel
from kardinal.cel import syntax
from kardinal_local.plane.schemas.checks import is_pattern
from kardinal_local.plane.schemas.rules.complaints import Complaint

__all__ = ["literal_complaints"]


def literal_complaints(node: cel.Node) -> Iterator[Complaint]:
    """The literals of an expression that cannot be read."""
    if isinstance(node, syntax.Call) and node.function in _READABLE and node.arguments:
        argument = node.arguments[-1]
        if isinstance(argument, syntax.Constant) and not _READABLE[node.function](argument.value):
            yield Complaint(argument.position, f"invalid {node.function} argument")
    for child in cel.children(node):
        yield from literal_complaints(child)


def _converts(name: str) -> Callable[[Any], bool]:
    def readable(value: Any) -> bool:
        try:
            cel.FUNCTIONS[name](name, 0, [value])
        except cel.Fault:
            return False
        return True

    return readable


_READABLE: Final[dict[str, Callable[[Any], bool]]] = {
    "timestamp": _converts("timestamp"),
    "duration": _converts("duration"),
    "matches": lambda value: not isinstance(value, str) or is_pattern(value),
}
