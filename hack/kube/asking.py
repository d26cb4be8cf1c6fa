"""Questions to a real server that is started for them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from hack.kube.assets import locate
from hack.kube.launcher import control_plane

__all__ = ["Ask", "real_server"]

SECONDS = 60

Ask = Callable[[str], Any]
"""The decoded JSON at a path."""


@contextmanager
def real_server() -> Iterator[Ask]:
    """Run a fresh control plane for the length of the block."""
    with control_plane() as kubeconfig:

        def ask(path: str) -> Any:
            command = [str(locate()["kubectl"]), f"--kubeconfig={kubeconfig}", "get", "--raw", path]
            return orjson.loads(subprocess.run(command, capture_output=True, check=True, timeout=SECONDS).stdout)

        yield ask
