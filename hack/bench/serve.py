"""Run a process under test: an API server, the programs, the simulator, or all of them, as `kardinal local up` does.

    python -m hack.bench.serve all|plane DIRECTORY
    python -m hack.bench.serve programs|simulator DIRECTORY KUBECONFIGS

KUBECONFIGS is the directory of a running plane, or a kubeconfig for all identities. Rollouts take no time. The process
prints the path of its kubeconfig as JSON on standard output. It answers every line on standard input with the requests
that its API server has counted so far, as JSON, which are empty without an API server.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson

from kardinal.runtime.logging import configure
from kardinal.runtime.process import run
from kardinal_local.plane import LocalPlane
from kardinal_local.serving import PlaneOptions, run_plane
from kardinal_local.simulator import BuiltInRenderer
from kardinal_local.stack import run_programs, run_stack, start_simulator

_SIMULATED: dict[str, Any] = {"delay": timedelta(0), "renderer": BuiltInRenderer()}

Counts = Callable[[], Iterable[Sequence[object]]]


@dataclass(frozen=True, slots=True)
class _RunningPlane:
    """An API server in another process, by the directory of a plane or the kubeconfig of an administrator."""

    kubeconfigs: Path

    @property
    def url(self) -> str:
        return self.kubeconfig_for("admin").as_uri()

    def kubeconfig_for(self, identity: str) -> Path:
        if self.kubeconfigs.is_file():
            return self.kubeconfigs
        return self.kubeconfigs / ("kubeconfig" if identity == "admin" else f"kubeconfig.{identity}")

    async def release(self) -> None:
        """Do nothing, because the API server is ready already."""


async def _answer(kubeconfig: Path, counts: Counts) -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    gc.freeze()  # `kardinal local up` does the same when it is ready.
    _say({"kubeconfig": str(kubeconfig)})
    while await reader.readline():
        _say(list(counts()))
    transport.close()


def _say(value: object) -> None:
    sys.stdout.write(orjson.dumps(value).decode() + "\n")
    sys.stdout.flush()


def _counts(plane: LocalPlane) -> Counts:
    def counted() -> Iterable[Sequence[object]]:
        for (user, verb, resource, sub, _), count in plane.audit.counts.items():
            yield user, verb, resource, sub, count

    return counted


@asynccontextmanager
async def _started(role: str, directory: Path, kubeconfigs: Path) -> AsyncIterator[tuple[Path, Counts]]:
    """Run the parts of a role, and yield the kubeconfig and the request counts of its API server."""
    await asyncio.to_thread(directory.mkdir, exist_ok=True)
    running = _RunningPlane(kubeconfigs)
    options = PlaneOptions(port=0)
    async with AsyncExitStack() as stack:
        match role:
            case "all":
                served = await stack.enter_async_context(
                    run_stack(directory, options=options, simulate=True, **_SIMULATED)
                )
                yield served.plane.kubeconfig, _counts(served.plane)
            case "plane":
                plane = await stack.enter_async_context(run_plane(directory, options))
                yield plane.kubeconfig, _counts(plane)
            case "programs":
                await stack.enter_async_context(run_programs(running, directory, simulate=False))
                yield running.kubeconfig_for("admin"), tuple
            case _:
                await start_simulator(stack, running, directory, **_SIMULATED)
                yield running.kubeconfig_for("admin"), tuple


async def _serve(role: str, directory: Path, kubeconfigs: Path) -> None:
    async with _started(role, directory, kubeconfigs) as (kubeconfig, counts):
        await _answer(kubeconfig, counts)


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one process under test.")
    parser.add_argument("role", choices=("all", "plane", "programs", "simulator"))
    parser.add_argument("directory", type=Path)
    parser.add_argument("kubeconfigs", type=Path, nargs="?", default=Path())
    chosen = parser.parse_args()
    configure(level="error")
    run(_serve(chosen.role, chosen.directory, chosen.kubeconfigs))


if __name__ == "__main__":
    main()
