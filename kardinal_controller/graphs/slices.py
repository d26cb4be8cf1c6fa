"""Walk a Graph in slices, so that other tasks get the event loop between the nodes of a large Graph.

Time decides about pauses only, never about a result: it is that of the clock, which costs a tenth of asking for the CPU
time of the thread, and a pause too many does no harm.
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
"""Seconds after which a walk pauses. It pauses between nodes and items, each of which takes at most 10 ms."""


async def walk_in_slices(graph: CompiledGraph, situation: WalkInput, *, note: Callable[[Seen], None]) -> Walk:
    """Return the result of one pass; before each pause, `note` gets the objects and selections that were read."""
    steps = walking(graph, situation)
    begun = time.perf_counter()
    while True:
        try:
            seen = next(steps)
        except StopIteration as finished:
            result: Walk = finished.value
            return result
        if time.perf_counter() - begun > SLICE:
            note(seen())
            await asyncio.sleep(0)
            begun = time.perf_counter()
