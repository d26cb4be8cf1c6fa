"""`examples/supply-chain/run.sh`: a push becomes an image in prod, and a failing test becomes nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from hack.kube.assets import built
from hack.registry.assets import REGISTRY

ROOT = Path(__file__).parents[2]
SECONDS = 150

_TURN = re.compile(
    r"^(?P<commit>[0-9a-f]{10})  (?P<bundle>.+?)\s+(?P<digest>sha256:[0-9a-f]{16})\s+\d+\.\d$", re.MULTILINE
)


def run(script: Path) -> tuple[int, str]:
    """Run a script with all that it starts; returns its exit status, and its output with its errors."""
    with subprocess.Popen(
        [script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            printed, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, printed


@pytest.mark.timeout(SECONDS + 20)
@pytest.mark.local_only("starts a local plane of its own")
def test_run_sh_goes_from_pushes_to_prod() -> None:
    if "SUPPLYCHAIN" not in os.environ or not built(REGISTRY):
        pytest.skip("`make test-supplychain` runs it")
    code, printed = run(ROOT / "examples/supply-chain/run.sh")
    assert code == 0, printed
    first, second, failing, third = (turn.groupdict() for turn in _TURN.finditer(printed))
    assert failing["bundle"] == "none: its test fails"
    assert failing["digest"] == second["digest"]
    for field in ("commit", "bundle", "digest"):
        assert len({turn[field] for turn in (first, second, third)}) == 3
    assert "STAND-INS" in printed
