"""Walk a Graph in slices, so that other tasks get the event loop between the nodes of a large Graph.

CPU time decides about pauses only, never about a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from kardinal.graph.compile import CompiledGraph
from kardinal.graph.walk import walking
from kardinal.graph.walk_types import Seen, Walk, WalkInput

__all__ = ["walk_in_slices"]

SLICE = 0.005
"""Seconds of CPU after which a walk pauses. It pauses between nodes and items, each of which takes at most 10 ms."""


async def walk_in_slices(graph: CompiledGraph, situation: WalkInput, *, note: Callable[[Seen], None]) -> Walk:
    """Return the result of one pass; before each pause, `note` gets the objects and selections that were read."""
    steps = walking(graph, situation)
    begun = time.thread_time()
    while True:
        try:
            seen = next(steps)
        except StopIteration as finished:
            result: Walk = finished.value
            return result
        if time.thread_time() - begun > SLICE:
            note(seen())
            await asyncio.sleep(0)
            begun = time.thread_time()
