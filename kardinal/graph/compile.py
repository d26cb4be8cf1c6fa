"""Compile declarations to a graph that can be walked: programs, edges and the order of the nodes.

Edges are not written down by the author. A node comes after every node that its fields mention: a template with
`${staging.status.phase}` comes after the node `staging`. The nodes that a condition mentions count by the list of the
condition:

    body, forEach,
    includeWhen          hard: the node waits for the data
    dependsOn            hard, without data
    propagateWhen        with the node itself in it: its outflow gate, which holds what comes after the node;
                         without: its inflow gate, which holds the node, and hard
    readyWhen            soft: orders, never holds

A node with `finalizes` is a hook: it acts only when another one is about to be deleted, so no other node can read it.

Either everything compiles or nothing does: a Graph with one wrong expression creates no object at all, and its error
lists every problem at once.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from kardinal import cel
from kardinal.cel.syntax import DEPENDENCIES
from kardinal.graph.conditions import NodeCondition, compile_condition
from kardinal.graph.dialect import Declaration, parse_nodes
from kardinal.graph.errors import GraphError, GraphProblem, ProblemReason
from kardinal.graph.programs import NO_PROGRAMS, Programs
from kardinal.graph.template import Template, compile_template
from kardinal.objects.applied import content_hash
from kardinal.objects.suggestions import nearest

__all__ = ["CompiledForEach", "CompiledGraph", "CompiledNode", "compile_graph"]


@dataclass(frozen=True, slots=True)
class CompiledForEach:
    """The list of a node with forEach.

    `ready_when` and `outflow` are the conditions on the list of all its objects, such as `size(quotas) > 2`; those of
    the node itself are evaluated for each object.
    """

    variable: str
    items: cel.Program
    ready_when: tuple[NodeCondition, ...]
    outflow: tuple[NodeCondition, ...]


@dataclass(frozen=True)
class CompiledNode:
    declaration: Declaration
    body: Template
    ready_when: tuple[NodeCondition, ...]
    include_when: tuple[NodeCondition, ...]
    inflow: tuple[NodeCondition, ...]
    outflow: tuple[NodeCondition, ...]
    hard: tuple[str, ...]
    soft: tuple[str, ...]
    for_each: CompiledForEach | None = None
    layer: int = 0

    @property
    def id(self) -> str:
        return self.declaration.id

    @cached_property
    def steady(self) -> bool:
        """Return whether the result depends on nothing but the object of the node and the results that it reads."""
        declaration = self.declaration
        conditions = (*self.ready_when, *self.include_when, *self.inflow, *self.outflow)
        programs = [each.program for each in conditions] + [program for _, program in self.body.programs]
        timed = declaration.recheck_after is not None or declaration.timeout is not None
        return (
            self.for_each is None
            and not timed
            and not declaration.ambiguous
            and not any(program.volatile for program in programs)
        )


@dataclass(frozen=True)
class CompiledGraph:
    """The nodes in topological order. `hash` stands for the nodes, and does not depend on their order in the spec."""

    nodes: tuple[CompiledNode, ...]
    hash: str

    @cached_property
    def by_label(self) -> Mapping[str, CompiledNode]:
        """The nodes by the lower-case id that labels carry."""
        return {node.id.lower(): node for node in self.nodes}

    @cached_property
    def by_id(self) -> Mapping[str, CompiledNode]:
        return {node.id: node for node in self.nodes}

    @cached_property
    def hooks(self) -> tuple[CompiledNode, ...]:
        """The nodes with `finalizes`, in the order of the nodes; a hook of a hook after that one."""
        hooks = (node for node in self.nodes if node.declaration.finalizes is not None)
        return tuple(sorted(hooks, key=self._hooks_before))

    def _hooks_before(self, hook: CompiledNode) -> int:
        target = self.by_id[str(hook.declaration.finalizes)]
        return 0 if target.declaration.finalizes is None else 1 + self._hooks_before(target)

    def needed_by(self, hook: CompiledNode) -> set[str]:
        """Return the ids of all nodes that a hook reads, or that come before those."""
        found: set[str] = set()
        waiting = [*hook.hard, *hook.soft]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting += self.by_id[node].hard
        return found


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
    problems += _hook_problems(nodes)
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


def _hook_problems(nodes: Mapping[str, CompiledNode]) -> Iterator[GraphProblem]:
    """Yield the problems of hooks: with the node that they finalize, and with nodes that read them."""
    for node in nodes.values():
        target = node.declaration.finalizes
        path = f"{node.declaration.path}.finalizes"
        if target is not None and target not in nodes:
            message = f"no node has the id {target[:80]!r}{_hint(target, nodes)}"
            yield GraphProblem("DeclarationError", path, message, node.id)
        elif target is not None and nodes[target].declaration.kind not in ("template", "patch"):
            message = f"{target} is a {nodes[target].declaration.kind}, of which nothing is deleted"
            yield GraphProblem("DeclarationError", path, message, node.id)
        elif target is not None and (cycle := _hook_cycle(node.id, nodes)):
            message = f"hooks finalize each other: {' -> '.join(cycle)}"
            yield GraphProblem("DeclarationError", path, message, node.id)
        for other in (*node.hard, *node.soft):
            of_hook = nodes[other].declaration.finalizes if other in nodes else None
            if of_hook is not None and of_hook != target:
                message = f"{other} is there only while {of_hook} is deleted, so that only its other hooks can read it"
                yield GraphProblem("DependencyError", node.declaration.path, message, node.id)


def _hook_cycle(node: str, nodes: Mapping[str, CompiledNode]) -> list[str]:
    """Return the chain of hooks from `node` back to itself; empty when it ends elsewhere."""
    path = [node]
    while (target := nodes[path[-1]].declaration.finalizes) is not None and target in nodes:
        path.append(target)
        if target in path[:-1]:
            return path if target == node else []
    return []


def _graph_hash(spec: Mapping[str, Any]) -> str:
    return content_hash(sorted(spec.get("nodes", ()), key=lambda node: str(node["id"])))


class _NodeCompiler:
    def __init__(self, declaration: Declaration, known: Collection[str], programs: Programs) -> None:
        self._programs = programs
        self._declaration = declaration
        self._known = known
        self._id = declaration.id
        self._variables = frozenset([declaration.for_each.variable] if declaration.for_each is not None else [])
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
        if isinstance(declaration.body, str) and not body.is_one_expression:
            path = f"{declaration.path}.{declaration.keyword}"
            self._problem("ExpressionError", path, "is an object, or one expression that makes it")
        for path, program in body.programs:
            self._check(program, path, myself="a node cannot be made from itself")
        include = self._conditions("includeWhen", declaration.include_when, myself="a node cannot decide on itself")
        propagate = self._conditions("propagateWhen", declaration.propagate_when)
        ready = self._conditions("readyWhen", declaration.ready_when)
        inflow = tuple(condition for condition in propagate if not condition.mentions(self._id))
        outflow = tuple(condition for condition in propagate if condition.mentions(self._id))
        for_each = self._for_each(ready, outflow)
        all_ready = ready
        if for_each is not None:
            ready = tuple(condition for condition in ready if condition not in for_each.ready_when)
            outflow = tuple(condition for condition in outflow if condition not in for_each.outflow)
        read = [program for _, program in body.programs] + [condition.program for condition in (*include, *propagate)]
        read += [for_each.items] if for_each is not None else []
        mine = {self._id, DEPENDENCIES, *self._variables}
        hard = {root for program in read for root in program.hard_roots}.union(self._depended_on()) - mine
        soft = {root for program in read for root in program.roots} - hard - mine
        seen = {root for condition in all_ready for root in condition.program.roots} - hard - mine
        return CompiledNode(
            declaration,
            body,
            ready,
            include,
            inflow,
            outflow,
            tuple(sorted(hard)),
            (*sorted(soft), *sorted(seen - soft)),
            for_each,
        )

    def _depended_on(self) -> Iterator[str]:
        """Yield the ids of `dependsOn`, and note a problem for each that is no other node."""
        for index, other in enumerate(self._declaration.depends_on):
            path = f"{self._declaration.path}.dependsOn[{index}]"
            if other == self._id:
                self._problem("DependencyError", path, f"a node cannot come after itself: {other} -> {other}")
            elif other not in self._known:
                self._problem("DependencyError", path, f"no node has the id {other[:80]!r}{_hint(other, self._known)}")
            else:
                yield other

    def _for_each(self, ready: tuple[NodeCondition, ...], outflow: tuple[NodeCondition, ...]) -> CompiledForEach | None:
        declared = self._declaration.for_each
        if declared is None:
            return None
        if declared.variable in self._known:
            self._problem("DeclarationError", declared.path, f"{declared.variable!r} is the id of a node")
        match compile_condition(declared.expression, path=declared.path, node=self._id, programs=self._programs):
            case NodeCondition() as condition:
                self._check(condition.program, declared.path, myself="a node cannot repeat over itself", variable=False)
                of_list = [
                    tuple(each for each in conditions if each.reads_whole(self._id)) for conditions in (ready, outflow)
                ]
                return CompiledForEach(declared.variable, condition.program, *of_list)
            case problem:
                self.problems.append(problem)
                return None

    def _problem(self, reason: ProblemReason, path: str, message: str) -> None:
        self.problems.append(GraphProblem(reason, path, message, self._id))

    def _conditions(self, word: str, texts: tuple[str, ...], *, myself: str | None = None) -> tuple[NodeCondition, ...]:
        conditions = []
        for index, text in enumerate(texts):
            path = f"{self._declaration.path}.{word}[{index}]"
            match compile_condition(text, path=path, node=self._id, programs=self._programs):
                case NodeCondition() as condition:
                    self._check(condition.program, path, myself=myself)
                    self._check_lifecycle(condition.program, path, word)
                    conditions.append(condition)
                case problem:
                    self.problems.append(problem)
        return tuple(conditions)

    def _check(self, program: cel.Program, path: str, *, myself: str | None, variable: bool = True) -> None:
        """Note a problem for each name in `program` that is no node, or that is this node while `myself` forbids it.

        `myself` is the reason that the author reads, such as "a node cannot read itself"; None allows it. `variable`:
        whether the variable of forEach may be read.
        """
        variables = self._variables if variable else frozenset[str]()
        for root in program.roots:
            if root == self._id and myself is not None:
                self._problem("DependencyError", path, f"{myself}: {self._id} -> {self._id}")
            elif root not in self._known and root not in variables and root != DEPENDENCIES:
                hint = _hint(root, {*self._known, *variables})
                self._problem("ExpressionError", path, f"unknown identifier {root!r}{hint}")

    def _check_lifecycle(self, program: cel.Program, path: str, word: str) -> None:
        """Note a problem where a condition of a node waits for what the condition decides itself."""
        decided = {"ready()", "updated()"} if word == "readyWhen" else {"updated()"}
        for reference in program.references:
            if reference.root == self._id and reference.path and reference.path[0] in decided:
                self._problem("DependencyError", path, f"{reference} is not known before the condition is")


def _hint(name: str, known: Iterable[str]) -> str:
    near = nearest(name, known)
    return f" (did you mean {near}?)" if near else ""


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
