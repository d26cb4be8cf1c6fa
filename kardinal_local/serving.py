"""The local plane as the command line runs it: its directory, its port and its options.

Apart from `stack` because it must be quick and small: nothing here imports a controller.
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
    """How a plane is run; `port` None takes the one the directory had before, `chaos` is a seed."""

    port: int | None = None
    durable: bool = False
    chaos: int | None = None


@asynccontextmanager
async def run_plane(
    directory: Path, options: PlaneOptions, *, hold: bool = False
) -> AsyncIterator[local_plane.LocalPlane]:
    """Run an API server on `directory` until the block ends; with `hold` it is ready when it is released."""
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
    """Return the port this directory had before, so that its kubeconfig stays true."""
    try:
        return int((directory / "port").read_text())
    except (FileNotFoundError, ValueError):
        return DEFAULT_PORT
