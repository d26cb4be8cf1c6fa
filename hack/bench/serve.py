"""The process under test: what `kardinal local up --simulate` runs, with rollouts that take no time.

    python -m hack.bench.serve DIRECTORY [PLANE]

With the directory of a plane that runs (`kardinal local up --only plane --dir PLANE`), the programs run without one.

It says on standard output where its kubeconfig is, and answers every line on standard input with the requests its API
server has counted so far, as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_local.serving import PlaneOptions
from kardinal_local.simulator import BuiltInRenderer
from kardinal_local.stack import Stack, run_programs, run_stack


@dataclass(frozen=True, slots=True)
class _RunningPlane:
    """A plane in another process."""

    directory: Path

    @property
    def url(self) -> str:
        return (self.directory / "kubeconfig").as_uri()

    def kubeconfig_for(self, identity: str) -> Path:
        return self.directory / ("kubeconfig" if identity == "admin" else f"kubeconfig.{identity}")

    async def release(self) -> None:
        """Nothing to do: it is ready."""


async def _answer(kubeconfig: Path, counts: Callable[[], Iterable[Sequence[object]]]) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.freeze()  # as `kardinal local up` does when it is ready
    _say({"kubeconfig": str(kubeconfig)})
    while await reader.readline():
        _say(list(counts()))
    transport.close()


def _say(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def _counts(stack: Stack) -> Iterable[Sequence[object]]:
    for (user, verb, resource, sub, _), count in stack.plane.audit.counts.items():
        yield user, verb, resource, sub, count


async def _serve(directory: Path, plane: Path | None) -> None:
    simulated: dict[str, Any] = {"simulate": True, "delay": timedelta(0), "renderer": BuiltInRenderer()}
    if plane is None:
        async with run_stack(directory, options=PlaneOptions(port=0), **simulated) as stack:
            await _answer(stack.plane.kubeconfig, lambda: _counts(stack))
    else:
        await asyncio.to_thread(directory.mkdir, exist_ok=True)
        async with run_programs(_RunningPlane(plane), directory, **simulated):
            await _answer(plane / "kubeconfig", tuple)


if __name__ == "__main__":
    configure(level="error")
    run(_serve(Path(sys.argv[1]), Path(sys.argv[2]) if sys.argv[2:] else None))
