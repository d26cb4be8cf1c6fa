"""The texts of the expressions of a Graph, collected before compilation, and the bounds on their size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kardinal.cel.scanner import Expression, Unscannable, scan
from kardinal.graph.errors import GraphError, GraphProblem

__all__ = ["GRAPH_EXPRESSIONS", "NAMESPACE_EXPRESSIONS", "NamespaceTexts", "TooManyExpressions", "check_size", "texts"]

GRAPH_EXPRESSIONS = 256 << 10
"""The most characters of all expressions of one Graph, each text counted once; enough for a thousand usual nodes."""

NAMESPACE_EXPRESSIONS = 512 << 10
"""The most characters of all expressions of a namespace; the Graphs of one Pipeline share nearly all of them."""

_BODIES = ("template", "patch", "ref", "reference", "watch", "def")
_CONDITIONS = ("readyWhen", "propagateWhen", "includeWhen")


class TooManyExpressions(GraphError):
    """The Graphs of a namespace have too many expressions; this Graph compiles when other Graphs are deleted."""


def texts(spec: Mapping[str, Any]) -> frozenset[str]:
    """Return the text of every expression in the valid declarations of `spec`."""
    nodes = spec.get("nodes")
    return frozenset(_of_nodes(nodes if isinstance(nodes, list) else ()))


def check_size(found: Collection[str]) -> None:
    """Raise GraphError when the expressions of one Graph exceed `GRAPH_EXPRESSIONS`."""
    size = sum(map(len, found))
    if size > GRAPH_EXPRESSIONS:
        message = (
            f"all expressions together have {size} characters, more than {GRAPH_EXPRESSIONS} (equal ones count once):"
            " shorten them, or split the Graph"
        )
        raise GraphError([GraphProblem("ExpressionError", "spec.nodes", message)])


class NamespaceTexts:
    """The expressions of the Graphs of one namespace, with their size kept up to date as Graphs come and go."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}
        self._users: Counter[str] = Counter()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._of)

    def check(self, graph: str, found: frozenset[str]) -> None:
        """Raise TooManyExpressions when the namespace exceeds its bound with the expressions `found` of `graph`."""
        own = self._of.get(graph, frozenset())
        size = self._size - sum(len(text) for text in own if self._users[text] == 1)
        size += sum(len(text) for text in found if self._users[text] == (text in own))
        if size > NAMESPACE_EXPRESSIONS:
            message = (
                f"all expressions of the namespace have {size} characters with those of this Graph, more than"
                f" {NAMESPACE_EXPRESSIONS} (equal ones count once): delete Graphs, or shorten their expressions"
            )
            raise TooManyExpressions([GraphProblem("ExpressionError", "spec.nodes", message)])

    def put(self, graph: str, found: frozenset[str]) -> None:
        """Replace the expressions of `graph` by `found`."""
        self.remove(graph)
        self._of[graph] = found
        self._size += sum(len(text) for text in found if not self._users[text])
        self._users.update(found)

    def remove(self, graph: str) -> None:
        """Remove the expressions of `graph` from the count."""
        for text in self._of.pop(graph, ()):
            self._users[text] -= 1
            if not self._users[text]:
                del self._users[text]
                self._size -= len(text)


def _of_nodes(nodes: Iterable[object]) -> Iterator[str]:
    for node in nodes:
        if not isinstance(node, dict):
            continue
        for word in _CONDITIONS:
            conditions = node.get(word)
            for text in conditions if isinstance(conditions, list) else ():
                if isinstance(text, str):
                    yield from _of_text(text) if "${" in text else (text,)
        for word in _BODIES:
            yield from _of_tree(node.get(word))
        yield from _of_list(node.get("forEach"))


def _of_list(given: object) -> Iterator[str]:
    """Yield the expression of a forEach in each of its forms: `list`, `{variable: list}` or `[{variable: list}]`."""
    first = given[0] if isinstance(given, list) and given else given
    for text in first.values() if isinstance(first, dict) else (first,):
        if isinstance(text, str):
            yield from _of_text(text) if "${" in text else (text,)


def _of_tree(root: object) -> Iterator[str]:
    waiting = [root]
    while waiting:
        match waiting.pop():
            case str(text) if "${" in text:
                yield from _of_text(text)
            case dict(fields):
                waiting += fields.values()
            case list(items):
                waiting += items


def _of_text(text: str) -> Iterator[str]:
    try:
        yield from (segment.source for segment in scan(text) if isinstance(segment, Expression))
    except Unscannable:
        return
