"""Measure the time in which a running process starts a plane, on a new directory and on a full one.

    python -m hack.bench.localplane.in_process [DIRECTORY]

It prints the seconds of several runs until the plane listens, as JSON: without DIRECTORY `{"inside": […]}`, on new
directories with an existing certificate authority; with DIRECTORY `{"reopen": […]}`, on that directory.
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
