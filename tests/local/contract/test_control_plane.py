"""The real control plane that the suite runs on comes up whole and does not outlive who started it."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hack.kube.assets import locate
from tests.support.target import Target

ROOT = Path(__file__).parents[3]
HOLDER = """
import signal
from hack.kube.launcher import control_plane
with control_plane() as kubeconfig:
    print(kubeconfig.read_text(), flush=True)
    signal.pause()
"""


@pytest.fixture(autouse=True)
def built(target: Target) -> None:
    """These tests start a server of their own, so the run has to be about real servers."""
    if target is not Target.ASSETS or "kube-apiserver" not in locate().binaries:
        pytest.skip("starts a real control plane: `make test-kube` runs it")


def test_a_control_plane_ends_with_a_test_run_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        directory, port = _read_kubeconfig(run)
        assert _accepts(port)
        run.send_signal(signal.SIGKILL)
        deadline = time.monotonic() + 30
        while _accepts(port) or directory.exists():
            assert time.monotonic() < deadline, f"{directory} or port {port} outlived the run"
            time.sleep(0.05)


def _read_kubeconfig(run: subprocess.Popen[str]) -> tuple[Path, int]:
    text = ""
    assert run.stdout is not None
    for line in run.stdout:
        text += line
        if line.startswith("current-context"):
            break
    authority = re.search(r"certificate-authority: (\S+)", text)
    server = re.search(r"server: https://127\.0\.0\.1:(\d+)", text)
    assert authority, text
    assert server, text
    return Path(authority[1]).parent, int(server[1])


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
