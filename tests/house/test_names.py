"""The names of a run are its own on a real server, and always the same on local planes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRINT = "from tests.support.names import *; print(TEAM, POLICIES, DEV)"


def names(*arguments: str, **environment: str) -> list[str]:
    """How a process that was started with these arguments spells some names."""
    inherited = {name: value for name, value in os.environ.items() if name != "KARDINAL_TEST_RUN"}
    printed = subprocess.run(
        [sys.executable, "-c", PRINT, *arguments],
        cwd=ROOT,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return printed.stdout.split()


def test_names_are_the_same_in_all_runs_on_local_planes() -> None:
    assert names() == ["team-local", "platform-policies-local", "dev-local"]


def test_names_of_each_run_on_a_real_server_are_its_own() -> None:
    first = names("--target=assets")
    second = names("--target=assets")
    assert len({name.rpartition("-")[2] for name in first}) == 1
    assert not set(first) & set(second)


def test_the_workers_of_a_run_use_the_names_of_the_process_that_started_them() -> None:
    assert names(KARDINAL_TEST_RUN="3f2a1") == ["team-3f2a1", "platform-policies-3f2a1", "dev-3f2a1"]


def test_a_run_says_which_names_are_its_own(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    plugin = ("-p", "tests.support.target")
    real = pytester.runpytest(*plugin, "--target=assets", "--collect-only")
    real.stdout.fnmatch_lines(["names of this run end in -*"])
    assert "names of this run" not in pytester.runpytest(*plugin, "--collect-only").stdout.str()
