"""A few failed tests get a second try in CI, and those that pass only then are named."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hack.second_try import MOST, RECORD

ROOT = Path(__file__).parents[2]
PYTEST = (sys.executable, "-m", "pytest", "-n0")

FAILS_WITHOUT_THE_OPTION = """
def test_unlucky(request):
    assert request.config.getoption("--target") == "assets"

def test_good():
    pass
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the directory of a project whose pytest knows the option `--target`."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n')
    (tmp_path / "conftest.py").write_text("def pytest_addoption(parser):\n    parser.addoption('--target')\n")
    return tmp_path


def run(project: Path, *options: str, command: Sequence[str] = PYTEST) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "hack.second_try", *options, "--", *command]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(arguments, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_test_that_passes_in_its_second_try_is_named(project: Path) -> None:
    (project / "test_one.py").write_text(FAILS_WITHOUT_THE_OPTION)
    result = run(project, "--option=--target=assets")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (project / RECORD).read_text() == "test_one.py::test_unlucky\n"
    assert "PASSED IN THE SECOND TRY:\n  test_one.py::test_unlucky" in result.stdout


def test_a_test_that_fails_twice_fails(project: Path) -> None:
    (project / "test_one.py").write_text(FAILS_WITHOUT_THE_OPTION)
    assert run(project).returncode == 1
    assert not (project / RECORD).exists()


def test_many_failed_tests_get_no_second_try_and_are_forgotten(project: Path) -> None:
    for number in range(MOST + 1):
        (project / f"test_{number}.py").write_text(FAILS_WITHOUT_THE_OPTION)
    result = run(project, "--option=--target=assets")
    assert result.returncode == 1
    assert "SECOND TRY" not in result.stdout
    for number in range(1, MOST + 1):
        (project / f"test_{number}.py").unlink()
    after = run(project, "--option=--target=assets", command=["false"])
    assert after.returncode == 1
    assert "SECOND TRY" not in after.stdout
