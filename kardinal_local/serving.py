"""Run the local plane on a directory, for `kardinal local up`: its directory, port and options.

This is separate from `stack` so that it starts quickly and with little memory: this module imports no controller.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kardinal_local import plane as local_plane

__all__ = ["PlaneOptions", "default_directory", "run_plane", "write_private"]

DEFAULT_PORT = 16443


@dataclass(frozen=True, slots=True)
class PlaneOptions:
    """The options of a plane.

    `port` defaults to the port that the plane of the directory had before, else 16443. `durable`: flush each write to
    disk; defaults to False. `chaos` is the seed of injected faults; defaults to None, no faults.
    """

    port: int | None = None
    durable: bool = False
    chaos: int | None = None


@asynccontextmanager
async def run_plane(
    directory: Path, options: PlaneOptions, *, hold: bool = False
) -> AsyncIterator[local_plane.LocalPlane]:
    """Run an API server on `directory` until the block ends.

    With `hold`, `/readyz` fails until `LocalPlane.release` is called; defaults to False.
    """
    port = options.port if options.port is not None else await asyncio.to_thread(_last_port, directory)
    plane = await local_plane.LocalPlane.start(
        directory, port=port, durable=options.durable, chaos=options.chaos, hold=hold
    )
    try:
        await asyncio.to_thread(write_private, directory / "port", str(plane.port).encode())
        yield plane
    finally:
        await plane.stop()


def default_directory() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "kardinal" / "local"


def write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


def _last_port(directory: Path) -> int:
    """Return the last port of the plane on this directory, so that its kubeconfig stays valid."""
    try:
        return int((directory / "port").read_text())
    except (FileNotFoundError, ValueError):
        return DEFAULT_PORT
