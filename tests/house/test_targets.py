"""Each test is run by exactly one of the targets that test on the local plane, and CI calls them all."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from hack.docs.pictures import CHOSEN
from hack.plane_suites import SUITES

ROOT = Path(__file__).parents[2]
TARGETS = ("test", "test-plane", "test-resilience", "test-ui")
"""Other targets run some of the same tests again, on a real API server or at real hosts."""

FILES = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py"))


def commands(target: str) -> str:
    """Return what `make` would run for a target, in an environment that is made."""
    dry = {**os.environ, "MAKEFLAGS": ""}
    made = subprocess.run(["make", "--dry-run", target], cwd=ROOT, env=dry, capture_output=True, text=True, check=True)
    return made.stdout


def chosen(target: str) -> set[str]:
    """Return the files of tests that a target runs."""
    ran = commands(target)
    if "hack.plane_suites" in ran:
        return {file for file in FILES if below(file, SUITES)}
    [arguments] = re.findall(r"pytest(.*)$", ran, re.MULTILINE)
    ignored = re.findall(r"--ignore=(\S+)", arguments)
    named = re.findall(r" (tests/\S+)", arguments) or ["tests"]
    return {file for file in FILES if below(file, named) and not below(file, ignored)}


def below(file: str, directories: Iterable[str]) -> bool:
    return any(Path(file).is_relative_to(directory) for directory in directories)


def test_each_file_of_tests_is_run_by_exactly_one_target() -> None:
    of_target = {target: chosen(target) for target in TARGETS}
    count = {file: [target for target in TARGETS if file in of_target[target]] for file in FILES}
    assert {file: targets for file, targets in count.items() if len(targets) != 1} == {}
    assert all(of_target.values())


@pytest.mark.parametrize("name", TARGETS)
def test_ci_calls_the_target_and_the_documentation_names_it(name: str) -> None:
    called = re.compile(rf"make {name}$", re.MULTILINE)
    assert called.search((ROOT / ".ci" / "run").read_text())
    assert f"`make {name}`" in (ROOT / "CONTRIBUTING.md").read_text()


def test_a_name_that_pytest_does_not_collect_hides_no_test() -> None:
    hidden = re.compile(r"^(async )?def test_", re.MULTILINE)
    others = (path for path in (ROOT / "tests").rglob("*.py") if not path.name.startswith("test_"))
    assert [str(path.relative_to(ROOT)) for path in others if hidden.search(path.read_text())] == []


def test_pictures_of_the_documentation_are_those_that_their_target_takes() -> None:
    assert "hack.docs.pictures" in commands("pictures")
    assert "`make pictures`" in (ROOT / "CONTRIBUTING.md").read_text()
    kept = sorted(path.name for path in (ROOT / "docs" / "pictures").iterdir())
    assert kept == sorted(CHOSEN.values())
    guide = (ROOT / "docs/guides/web-page.md").read_text()
    assert sorted(re.findall(r"!\[[^\]]{20,}\]\(\.\./pictures/(\S+)\)", guide)) == kept
