"""A plane in a process of its own, to be killed, traced, or shut in."""

from __future__ import annotations

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Served", "found", "served"]

_SERVE = """
import asyncio, shutil, sys
from pathlib import Path
from kardinal.localplane import LocalPlane

async def serve(directory, durable, kubeconfig):
    plane = await LocalPlane.start(Path(directory), durable=durable == "durable")
    shutil.copy(plane.kubeconfig, kubeconfig)
    while not plane.idle:
        await asyncio.sleep(0)
    print("ready", flush=True)
    await asyncio.to_thread(obey, Path(directory) / "ballast")
    await plane.stop()

def obey(ballast):
    for order in sys.stdin:
        if order == "fill\\n":
            with ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(bytes(4096)):
                        pass
                except OSError:
                    pass
        elif order == "free\\n":
            ballast.unlink()
        print("done", flush=True)

asyncio.run(serve(*sys.argv[1:]))
"""


@dataclass(frozen=True)
class Served:
    """A plane that is ready, and has done the housekeeping of its start."""

    process: asyncio.subprocess.Process
    kubeconfig: Path

    async def kill(self) -> None:
        """End it between any two instructions."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()

    async def order(self, what: str) -> None:
        """Have it `fill` the disk of its directory, or `free` what it filled."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n".encode())
        assert await self.process.stdout.readline() == b"done\n"


@asynccontextmanager
async def served(directory: Path, *, durable: bool, inside: Sequence[str] = ()) -> AsyncIterator[Served]:
    """A process that serves `directory`, run by the program and arguments of `inside`; ends with its input."""
    kubeconfig = directory.with_name(f"{directory.name}.kubeconfig")
    process = await asyncio.create_subprocess_exec(
        *(*inside, sys.executable, "-c", _SERVE, str(directory), "durable" if durable else "", str(kubeconfig)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield Served(process, kubeconfig)
        process.stdin.close()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def found(program: str) -> str:
    """Where a program is; empty when this machine has none."""
    return shutil.which(program) or ""
