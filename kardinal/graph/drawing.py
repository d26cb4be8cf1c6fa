"""Draw a Graph for other programs: as Mermaid, as DOT of Graphviz, or as JSON.

    flowchart LR
      n0["dev<br>PromotionStep<br>Ready"]
      n1["hours<br>PolicyGate<br>NotReady"]
      n0 ==> n1
      n0 -.-> n2

A thick edge leaves a node whose `propagateWhen` holds the nodes after it, a dotted one only orders. The names of nodes
and objects are text of others: each format quotes them, and a node is called by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import orjson

from kardinal.graph.compile import CompiledGraph, CompiledNode
from kardinal.objects import JsonObject

__all__ = ["FORMATS", "Drawing", "DrawnEdge", "DrawnNode", "drawing_of"]

EdgeKind = Literal["data", "gate", "order"]
"""Why a node comes after another one: it reads its data, it is held by its gate, or it is only looked at later."""

_MERMAID: Final[Mapping[EdgeKind, str]] = {"data": "-->", "gate": "==>", "order": "-.->"}
_DOT: Final[Mapping[EdgeKind, str]] = {"data": "solid", "gate": "bold", "order": "dotted"}
_ENTITIES: Final = str.maketrans({character: f"#{ord(character)};" for character in "#&<>\"'`\n"})


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A node; `object` is the kind of its object, empty for a computed value, and `state` is empty without a status."""

    id: str
    kind: str
    object: str
    state: str

    @property
    def lines(self) -> list[str]:
        return [line for line in (self.id, self.object, self.state) if line]


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    before: str
    after: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Drawing:
    """The nodes, dependencies first, and the edges between them."""

    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]


def drawing_of(graph: CompiledGraph, status: JsonObject) -> Drawing:
    """Return the drawing of a Graph with the states of its `status`, which may be empty."""
    states = {node["id"]: str(node["state"]) for node in status.get("nodes") or ()}
    gated = {node.id for node in graph.nodes if node.outflow or (node.for_each is not None and node.for_each.outflow)}
    nodes = tuple(
        DrawnNode(node.id, node.declaration.kind, _object_of(node), states.get(node.id, "")) for node in graph.nodes
    )
    edges = [
        DrawnEdge(before, node.id, "gate" if before in gated else "data")
        for node in graph.nodes
        for before in node.hard
    ]
    edges += [DrawnEdge(before, node.id, "order") for node in graph.nodes for before in node.soft]
    for hook in graph.hooks:
        target = str(hook.declaration.finalizes)
        if target not in (*hook.hard, *hook.soft):
            edges.append(DrawnEdge(target, hook.id, "order"))
    return Drawing(nodes, tuple(edges))


def _object_of(node: CompiledNode) -> str:
    body = node.declaration.body
    if node.declaration.kind == "def" or not isinstance(body, dict):
        return ""
    return f"{body['kind']} for each {node.for_each.variable}" if node.for_each is not None else str(body["kind"])


def _mermaid(drawing: Drawing) -> str:
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    nodes = [f'  {numbers[node.id]}["{"<br>".join(map(_entities, node.lines))}"]' for node in drawing.nodes]
    edges = [f"  {numbers[edge.before]} {_MERMAID[edge.kind]} {numbers[edge.after]}" for edge in drawing.edges]
    return "\n".join(["flowchart LR", *nodes, *edges])


def _entities(text: str) -> str:
    """Return a text as Mermaid shows it: as HTML whose entities begin with `#`."""
    return text.translate(_ENTITIES)


def _dot(drawing: Drawing) -> str:
    numbers = {node.id: f"n{number}" for number, node in enumerate(drawing.nodes)}
    nodes = [f'  {numbers[node.id]} [label="{_quoted(node.lines)}"];' for node in drawing.nodes]
    edges = [f"  {numbers[edge.before]} -> {numbers[edge.after]} [style={_DOT[edge.kind]}];" for edge in drawing.edges]
    return "\n".join(["digraph {", "  rankdir=LR; node [shape=box];", *nodes, *edges, "}"])


def _quoted(lines: list[str]) -> str:
    return "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines)


def _json(drawing: Drawing) -> str:
    content: dict[str, Any] = asdict(drawing)
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


FORMATS: Final[Mapping[str, Callable[[Drawing], str]]] = {"mermaid": _mermaid, "dot": _dot, "json": _json}
"""The formats by name, each with the function that writes a drawing in it."""
