"""How long a plane takes to start inside a process that runs already, and to open a directory that is full.

    python -m hack.bench.localplane.in_process [DIRECTORY]

Prints JSON, seconds of several runs each: without DIRECTORY `inside`, until a plane on a new one listens, its authority
given; with it `reopen`, until a plane on that one listens.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path

from kardinal_local.plane import Authority, LocalPlane

STARTS = 21
REOPENINGS = 5


async def _seconds(directory: Path, authority: Authority) -> float:
    began = time.perf_counter()
    plane = await LocalPlane.start(directory, authority=authority)
    took = time.perf_counter() - began
    await plane.stop()
    return took


async def _measure(full: Path | None) -> dict[str, list[float]]:
    authority = Authority.create()
    if full is not None:
        return {"reopen": [await _seconds(full, authority) for _ in range(REOPENINGS)]}
    with tempfile.TemporaryDirectory() as directory:
        return {"inside": [await _seconds(Path(directory) / str(number), authority) for number in range(STARTS)]}


if __name__ == "__main__":
    full = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    sys.stdout.write(json.dumps(asyncio.run(_measure(full))) + "\n")
