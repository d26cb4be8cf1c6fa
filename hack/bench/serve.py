"""The process under test: what `kardinal local up --simulate` runs, with rollouts that take no time.

It says on standard output where its kubeconfig is, and answers every line on standard input with the requests its API
server has counted so far, as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from datetime import timedelta
from pathlib import Path

import orjson

from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_local.serving import PlaneOptions
from kardinal_local.simulator import BuiltInRenderer
from kardinal_local.stack import Stack, run_stack


async def _answer(stack: Stack) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.freeze()  # as `kardinal local up` does when it is ready
    _say({"kubeconfig": str(stack.plane.kubeconfig)})
    while await reader.readline():
        counts = stack.plane.audit.counts.items()
        _say([[user, verb, resource, sub, count] for (user, verb, resource, sub, _), count in counts])
    transport.close()


def _say(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


async def _serve(directory: Path) -> None:
    async with run_stack(
        directory, options=PlaneOptions(port=0), simulate=True, delay=timedelta(0), renderer=BuiltInRenderer()
    ) as stack:
        await _answer(stack)


if __name__ == "__main__":
    configure(level="error")
    run(_serve(Path(sys.argv[1])))
