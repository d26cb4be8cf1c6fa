"""Walk a Graph in slices, so that one with a thousand nodes leaves the event loop to others in between.

CPU time decides about pauses only, never about a result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from kardinal.graph.compile import CompiledGraph
from kardinal.graph.walk import walking
from kardinal.graph.walk_types import Seen, Situation, Walk

__all__ = ["walk_in_slices"]

SLICE = 0.005
"""Seconds of CPU after which the walk pauses before the next node, which takes 10 ms at most."""


async def walk_in_slices(graph: CompiledGraph, situation: Situation, *, note: Callable[[Seen], None]) -> Walk:
    """Return the result of one pass; `note` is told before each pause whose changes matter so far."""
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
