"""From declarations to a graph that can be walked: programs, edges and the order.

Edges are not written down. A node comes after every node its fields mention; what its conditions mention counts
according to the list they stand in:

    body, includeWhen    hard: the node waits for the data
    propagateWhen        with the node itself in it: its outflow gate, which holds what comes after the node;
                         without: its inflow gate, which holds the node, and hard
    readyWhen            soft: orders, never holds

Either everything compiles or nothing does: a Graph with one wrong expression creates no object at all, and says
everything that is wrong in one go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kardinal import cel
from kardinal.graph.conditions import Condition, compile_condition
from kardinal.graph.dialect import Declaration, parse_nodes
from kardinal.graph.errors import GraphError, Problem
from kardinal.graph.identity import content_hash
from kardinal.graph.node_order import find_cycle, layers, topological_order
from kardinal.graph.programs import NO_PROGRAMS, Programs
from kardinal.graph.template import Template, compile_template
from kardinal.objects.suggestions import nearest

__all__ = ["CompiledGraph", "CompiledNode", "compile_graph"]


@dataclass(frozen=True, slots=True)
class CompiledNode:
    declaration: Declaration
    body: Template
    ready_when: tuple[Condition, ...]
    include_when: tuple[Condition, ...]
    inflow: tuple[Condition, ...]
    outflow: tuple[Condition, ...]
    hard: tuple[str, ...]
    soft: tuple[str, ...]
    layer: int = 0

    @property
    def id(self) -> str:
        return self.declaration.id


@dataclass(frozen=True)
class CompiledGraph:
    """`nodes` are in topological order; `hash` is that of the nodes whatever their order."""

    nodes: tuple[CompiledNode, ...]
    hash: str

    @cached_property
    def by_label(self) -> Mapping[str, CompiledNode]:
        """The nodes by the lower-case id that labels carry."""
        return {node.id.lower(): node for node in self.nodes}


def compile_graph(spec: Mapping[str, Any], programs: Programs = NO_PROGRAMS) -> CompiledGraph:
    """Return the graph of `spec`; raises GraphError with everything that is wrong.

    Expressions that are not among `programs` are compiled.
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
    order = topological_order({node.id: (*node.hard, *node.soft) for node in nodes.values()})
    order = order or topological_order(hard)
    if order is None:
        cycle = find_cycle(hard)
        message = f"the nodes depend on each other in a cycle: {' -> '.join(cycle)}"
        raise GraphError([Problem("DependencyError", nodes[cycle[0]].declaration.path, message, cycle[0])])
    depth = layers(order, hard)
    return CompiledGraph(tuple(replace(nodes[node], layer=depth[node]) for node in order), _graph_hash(spec))


def _graph_hash(spec: Mapping[str, Any]) -> str:
    return content_hash(sorted(spec.get("nodes", ()), key=lambda node: str(node["id"])))


class _NodeCompiler:
    def __init__(self, declaration: Declaration, known: Iterable[str], programs: Programs) -> None:
        self._programs = programs
        self._declaration = declaration
        self._known = known
        self._id = declaration.id
        self.problems: list[Problem] = []

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

    def _conditions(self, word: str, texts: tuple[str, ...], *, myself: str | None = None) -> tuple[Condition, ...]:
        conditions = []
        for index, text in enumerate(texts):
            path = f"{self._declaration.path}.{word}[{index}]"
            match compile_condition(text, path=path, node=self._id, programs=self._programs):
                case Condition() as condition:
                    self._check(condition.program, path, myself=myself)
                    conditions.append(condition)
                case problem:
                    self.problems.append(problem)
        return tuple(conditions)

    def _check(self, program: cel.Program, path: str, *, myself: str | None) -> None:
        """Every root is a node, and another one where `myself` says why not this one."""
        for root in sorted({reference.root for reference in program.references}):
            if root == self._id and myself is not None:
                self.problems.append(Problem("DependencyError", path, f"{myself}: {self._id} -> {self._id}", self._id))
            elif root not in self._known:
                near = nearest(root, self._known)
                hint = f" (did you mean {near}?)" if near else ""
                message = f"unknown identifier {root!r}{hint}"
                self.problems.append(Problem("ExpressionError", path, message, self._id))

    def _roots(self, programs: Iterable[cel.Program], *, soft: bool | None) -> list[str]:
        """Return the other nodes that are read, in a stable order; `soft` limits to one kind of reading."""
        return sorted(
            {
                reference.root
                for program in programs
                for reference in program.references
                if reference.root != self._id and (soft is None or reference.soft is soft)
            }
        )
