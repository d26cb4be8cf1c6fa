"""`kardinal-supplychain` as a process: it stamps by the rights of its kubeconfig, and says why it cannot start."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from tests.support.server import ApiServer

DEADLINE = 60.0


@pytest.mark.parametrize("program", ["kardinal_supplychain", "kardinal_controller"])
async def test_a_port_that_is_taken_is_named_without_a_traceback(api_server: ApiServer, program: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = await _run(
            program, "--kubeconfig", api_server.kubeconfig, f"--health-probe-bind-address={address}"
        )
    assert (code, "Traceback" in said) == (1, False), said
    assert said.splitlines()[-1].startswith("Error: ")
    assert "in use" in said


async def _run(program: str, *arguments: str | Path) -> tuple[int | None, str]:
    command = (sys.executable, "-c", f"from {program}.main import main; main()", *arguments)
    options = ("--metrics-bind-address=127.0.0.1:0", "--log-format=console")
    process = await asyncio.create_subprocess_exec(*command, *options, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(DEADLINE):
        _, said = await process.communicate()
    return process.returncode, said.decode()
