"""How long a plane takes to start inside a process that runs already, and to open a directory that is full.

    python -m hack.bench.localplane.in_process DIRECTORY

Prints JSON: `start`, seconds until a fresh plane listens, its authority given, the median of several; `reopen`, seconds
until a plane on DIRECTORY listens, or 0 without one.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kardinal.localplane import Authority, LocalPlane

STARTS = 21


async def _seconds(directory: Path, authority: Authority) -> float:
    began = time.perf_counter()
    plane = await LocalPlane.start(directory, authority=authority)
    took = time.perf_counter() - began
    await plane.stop()
    return took


async def _measure(full: Path | None) -> dict[str, float]:
    authority = Authority.create()
    with tempfile.TemporaryDirectory() as directory:
        starts = [await _seconds(Path(directory) / str(number), authority) for number in range(STARTS)]
    reopen = await _seconds(full, authority) if full else 0.0
    return {"start": statistics.median(starts), "reopen": reopen}


if __name__ == "__main__":
    full = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.stdout.write(json.dumps(asyncio.run(_measure(full))) + "\n")
