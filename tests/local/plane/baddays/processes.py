"""A plane in a process of its own, to be killed, traced, or shut in.

Importing a server takes longer than everything a test does with it, so one program imports it and makes a child of
itself for every plane that is asked for. Orders and answers are lines; there is never more than one on its way.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import orjson

__all__ = ["Nursery", "Served", "found", "nursery"]

_PROGRAM = """
import asyncio, json, os, shutil, sys
from pathlib import Path
from kardinal_local.plane import LocalPlane

async def serve(directory, durable, kubeconfig):
    plane = await LocalPlane.start(Path(directory), durable=durable)
    shutil.copy(plane.kubeconfig, kubeconfig)
    while not plane.idle:
        await asyncio.sleep(0)
    print(os.getpid(), flush=True)
    await asyncio.to_thread(obey, Path(directory) / "ballast")
    await plane.stop()

def obey(ballast):
    while (order := sys.stdin.readline()) not in {"", "stop\\n"}:
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

while order := sys.stdin.readline():
    child = os.fork()
    if not child:
        asyncio.run(serve(*json.loads(order)))
        os._exit(0)
    os.waitpid(child, 0)
    print("ended", flush=True)
"""


class Nursery:
    """The program that has planes."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def tell(self, order: str) -> str:
        """Send one line, and read the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(order.encode() + b"\n")
        return await self.hear()

    async def hear(self) -> str:
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the program has ended"
        return line.decode().strip()

    @asynccontextmanager
    async def plane(self, directory: Path, *, durable: bool) -> AsyncIterator[Served]:
        """A plane that is ready, and has done the housekeeping of its start; ended with the block, if not killed."""
        kubeconfig = directory.with_name(f"{directory.name}.kubeconfig")
        order = orjson.dumps([str(directory), durable, str(kubeconfig)]).decode()
        served = Served(self, int(await self.tell(order)), kubeconfig)
        try:
            yield served
            if not served.killed:
                assert await self.tell("stop") == "ended"
        except BaseException:
            if not served.killed:
                os.kill(served.pid, signal.SIGKILL)
            raise


@dataclass
class Served:
    """A plane that is ready."""

    nursery: Nursery
    pid: int
    kubeconfig: Path
    killed: bool = False

    async def kill(self) -> None:
        """End it between any two instructions."""
        self.killed = True
        os.kill(self.pid, signal.SIGKILL)
        assert await self.nursery.hear() == "ended"

    async def order(self, what: str) -> None:
        """Have it `fill` the disk of its directory, or `free` what it filled."""
        assert await self.nursery.tell(what) == "done"


@asynccontextmanager
async def nursery(inside: Sequence[str] = ()) -> AsyncIterator[Nursery]:
    """The program, run by the program and arguments of `inside`."""
    process = await asyncio.create_subprocess_exec(
        *inside, sys.executable, "-c", _PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Nursery(process)
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def found(program: str) -> str:
    """Where a program is; empty when this machine has none."""
    return shutil.which(program) or ""
