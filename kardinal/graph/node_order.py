"""The order of nodes, or the cycle that denies them one."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

__all__ = ["find_cycle", "layers", "topological_order"]

Edges = Mapping[str, Sequence[str]]
"""For each node, in declaration order, the nodes it comes after."""


def topological_order(edges: Edges) -> list[str] | None:
    """Dependencies first, else as declared; None when there is a cycle."""
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


def find_cycle(edges: Edges) -> list[str]:
    """One cycle, each node before one it comes after; to be asked only where there is one."""
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


def layers(order: Sequence[str], edges: Edges) -> dict[str, int]:
    """How many nodes stand one after the other before each node."""
    depth: dict[str, int] = {}
    for node in order:
        depth[node] = 1 + max((depth[other] for other in edges[node]), default=-1)
    return depth
