"""A real control plane for the length of a `with` block, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.kube.assets import HACK

__all__ = ["LaunchFailed", "control_plane"]

STOP_SECONDS = 20.0


class LaunchFailed(Exception):
    """The control plane did not come up; the text says why."""


@contextmanager
def control_plane(*, nodes: bool = False, definitions: Path | None = None) -> Iterator[Path]:
    """Yield the kubeconfig of an administrator; the control plane ends with the block, or with this process."""
    command = [sys.executable, "-m", "hack.kube.cluster", "--until-stdin-closes"]
    command += ["--nodes"] if nodes else []
    command += [f"--definitions={definitions}"] if definitions else []
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            command, cwd=HACK.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, text=True
        ) as process,
    ):
        try:
            # Its own deadline ends it, and so this line, when the control plane does not answer.
            kubeconfig = process.stdout.readline().strip() if process.stdout else ""
            if not kubeconfig:
                complaints.seek(0)
                raise LaunchFailed(complaints.read().strip())
            yield Path(kubeconfig)
        finally:
            if process.stdin:
                process.stdin.close()
            process.wait(STOP_SECONDS)
