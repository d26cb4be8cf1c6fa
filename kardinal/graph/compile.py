"""Compile declarations to a graph that can be walked: programs, edges and the order of the nodes.

Edges are not written down by the author. A node comes after every node that its fields mention: a template with
`${staging.status.phase}` comes after the node `staging`. The nodes that a condition mentions count by the list of the
condition:

    body, includeWhen    hard: the node waits for the data
    propagateWhen        with the node itself in it: its outflow gate, which holds what comes after the node;
                         without: its inflow gate, which holds the node, and hard
    readyWhen            soft: orders, never holds

Either everything compiles or nothing does: a Graph with one wrong expression creates no object at all, and its error
lists every problem at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kardinal import cel
from kardinal.graph.conditions import NodeCondition, compile_condition
from kardinal.graph.dialect import Declaration, parse_nodes
from kardinal.graph.errors import GraphError, GraphProblem
from kardinal.graph.identity import content_hash
from kardinal.graph.programs import NO_PROGRAMS, Programs
from kardinal.graph.template import Template, compile_template
from kardinal.objects.suggestions import nearest

__all__ = ["CompiledGraph", "CompiledNode", "compile_graph"]


@dataclass(frozen=True, slots=True)
class CompiledNode:
    declaration: Declaration
    body: Template
    ready_when: tuple[NodeCondition, ...]
    include_when: tuple[NodeCondition, ...]
    inflow: tuple[NodeCondition, ...]
    outflow: tuple[NodeCondition, ...]
    hard: tuple[str, ...]
    soft: tuple[str, ...]
    layer: int = 0

    @property
    def id(self) -> str:
        return self.declaration.id


@dataclass(frozen=True)
class CompiledGraph:
    """The nodes in topological order. `hash` stands for the nodes, and does not depend on their order in the spec."""

    nodes: tuple[CompiledNode, ...]
    hash: str

    @cached_property
    def by_label(self) -> Mapping[str, CompiledNode]:
        """The nodes by the lower-case id that labels carry."""
        return {node.id.lower(): node for node in self.nodes}


def compile_graph(spec: Mapping[str, Any], programs: Programs = NO_PROGRAMS) -> CompiledGraph:
    """Return the graph of `spec`; raises GraphError with all of its problems.

    An expression that is not in `programs` is compiled here.
    """
    declarations, problems = parse_nodes(spec)
    listed = spec.get("nodes")
    nodes_given = listed if isinstance(listed, list) else []
    known = {node["id"] for node in nodes_given if isinstance(node, dict) and isinstance(node.get("id"), str)}
    nodes: dict[str, CompiledNode] = {}
    for declaration in declarations:
        compiler = _NodeCompiler(declaration, known, programs)
        nodes[declaration.id] = compiler.compile()
        problems += compiler.problems
    if problems:
        raise GraphError(problems)
    hard = {node.id: node.hard for node in nodes.values()}
    order = _topological_order({node.id: (*node.hard, *node.soft) for node in nodes.values()})
    order = order or _topological_order(hard)
    if order is None:
        cycle = _find_cycle(hard)
        message = f"the nodes depend on each other in a cycle: {' -> '.join(cycle)}"
        raise GraphError([GraphProblem("DependencyError", nodes[cycle[0]].declaration.path, message, cycle[0])])
    depth = _layers(order, hard)
    return CompiledGraph(tuple(replace(nodes[node], layer=depth[node]) for node in order), _graph_hash(spec))


def _graph_hash(spec: Mapping[str, Any]) -> str:
    return content_hash(sorted(spec.get("nodes", ()), key=lambda node: str(node["id"])))


class _NodeCompiler:
    def __init__(self, declaration: Declaration, known: Iterable[str], programs: Programs) -> None:
        self._programs = programs
        self._declaration = declaration
        self._known = known
        self._id = declaration.id
        self.problems: list[GraphProblem] = []

    def compile(self) -> CompiledNode:
        declaration = self._declaration
        body, problems = compile_template(
            declaration.body,
            path=f"{declaration.path}.{declaration.keyword}",
            node=self._id,
            programs=self._programs,
        )
        self.problems += problems
        for path, program in body.programs:
            self._check(program, path, myself="a node cannot be made from itself")
        include = self._conditions("includeWhen", declaration.include_when, myself="a node cannot decide on itself")
        propagate = self._conditions("propagateWhen", declaration.propagate_when)
        ready = self._conditions("readyWhen", declaration.ready_when)
        inflow = tuple(condition for condition in propagate if not condition.mentions(self._id))
        outflow = tuple(condition for condition in propagate if condition.mentions(self._id))
        read = [program for _, program in body.programs] + [condition.program for condition in (*include, *propagate)]
        hard = self._roots(read, soft=False)
        soft = [root for root in self._roots(read, soft=True) if root not in hard]
        seen = [root for root in self._roots((condition.program for condition in ready), soft=None) if root not in hard]
        return CompiledNode(
            declaration, body, ready, include, inflow, outflow, tuple(hard), tuple(dict.fromkeys([*soft, *seen]))
        )

    def _conditions(self, word: str, texts: tuple[str, ...], *, myself: str | None = None) -> tuple[NodeCondition, ...]:
        conditions = []
        for index, text in enumerate(texts):
            path = f"{self._declaration.path}.{word}[{index}]"
            match compile_condition(text, path=path, node=self._id, programs=self._programs):
                case NodeCondition() as condition:
                    self._check(condition.program, path, myself=myself)
                    conditions.append(condition)
                case problem:
                    self.problems.append(problem)
        return tuple(conditions)

    def _check(self, program: cel.Program, path: str, *, myself: str | None) -> None:
        """Note a problem for each name in `program` that is no node, or that is this node while `myself` forbids it.

        `myself` is the reason that the author reads, such as "a node cannot read itself"; None allows it.
        """
        for root in sorted({reference.root for reference in program.references}):
            if root == self._id and myself is not None:
                self.problems.append(
                    GraphProblem("DependencyError", path, f"{myself}: {self._id} -> {self._id}", self._id)
                )
            elif root not in self._known:
                near = nearest(root, self._known)
                hint = f" (did you mean {near}?)" if near else ""
                message = f"unknown identifier {root!r}{hint}"
                self.problems.append(GraphProblem("ExpressionError", path, message, self._id))

    def _roots(self, programs: Iterable[cel.Program], *, soft: bool | None) -> list[str]:
        """Return the ids of the other nodes that `programs` read, in a stable order.

        `soft` selects by kind of reading: True for soft ones only, False for hard ones only, None for both.
        """
        return sorted(
            {
                reference.root
                for program in programs
                for reference in program.references
                if reference.root != self._id and (soft is None or reference.soft is soft)
            }
        )


_Edges = Mapping[str, Sequence[str]]
"""For each node, in the order of declaration, the ids of the nodes that it comes after."""


def _topological_order(edges: _Edges) -> list[str] | None:
    """Return the nodes with dependencies first, otherwise in the order of declaration; None when there is a cycle."""
    position = {node: index for index, node in enumerate(edges)}
    names = list(edges)
    waiting = {node: len(set(before)) for node, before in edges.items()}
    after: dict[str, list[str]] = {node: [] for node in edges}
    for node, before in edges.items():
        for dependency in set(before):
            after[dependency].append(node)
    ready = [position[node] for node, count in waiting.items() if count == 0]
    order = []
    while ready:
        node = names[heapq.heappop(ready)]
        order.append(node)
        for dependent in after[node]:
            waiting[dependent] -= 1
            if waiting[dependent] == 0:
                heapq.heappush(ready, position[dependent])
    return order if len(order) == len(edges) else None


def _find_cycle(edges: _Edges) -> list[str]:
    """Return the nodes of a cycle, each followed by a node that it comes after. `edges` must contain a cycle."""
    left = dict(edges)
    while trimmed := [node for node, before in left.items() if not any(other in left for other in before)]:
        for node in trimmed:
            del left[node]
    path = [next(iter(left))]
    while True:
        step = next(other for other in left[path[-1]] if other in left)
        if step in path:
            return [*path[path.index(step) :], step]
        path.append(step)


def _layers(order: Sequence[str], edges: _Edges) -> dict[str, int]:
    """Return the length of the longest chain of dependencies before each node: 0 for a node without dependencies."""
    depth: dict[str, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[other] for other in edges[node]), default=-1)
    return depth
